"""Identity: which conversation a raw webhook payload belongs to, by rule and never by likeness.

Pure and free of dependencies: no clock, no randomness, no stubs, nothing but the standard library.
"""

from turnledger.identity.batch import batch_identity, work_key
from turnledger.identity.canonical import fingerprint
from turnledger.identity.message import Message, digest
from turnledger.identity.model import (
    MAX_KEY_BYTES,
    Conversation,
    Identity,
    NoConversation,
    Payload,
    Rule,
    Source,
)
from turnledger.identity.registry import SOURCES
from turnledger.identity.resolve import identify

__all__ = [
    "MAX_KEY_BYTES",
    "SOURCES",
    "Conversation",
    "Identity",
    "Message",
    "NoConversation",
    "Payload",
    "Rule",
    "Source",
    "batch_identity",
    "digest",
    "fingerprint",
    "identify",
    "work_key",
]
