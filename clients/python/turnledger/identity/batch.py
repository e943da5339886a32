"""What a batch of triggers is as one: its work key and its identity."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from turnledger.identity.canonical import event_key
from turnledger.identity.model import Identity

WORK_KEY_CHARACTERS: Final = 32

# UTF-8 has no bytes for these; the client replaces them wherever it sends text.
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
REPLACEMENT = "\ufffd"


def work_key(trigger_ids: Iterable[str]) -> str:
    """The digest of a turn's triggers: order, repeats and blanks do not matter.

    Ids are trimmed (of what `str.strip` trims), empty ones and repeats are dropped, the rest is
    sorted by UTF-8 bytes, joined with a newline and hashed: the first 32 hex digits of SHA-256.
    No id gives the empty key, which the ledger does not record.
    """
    # A bare string would otherwise be taken letter by letter.
    given = [trigger_ids] if isinstance(trigger_ids, str) else trigger_ids
    ids = {_LONE_SURROGATES.sub(REPLACEMENT, trigger_id).strip() for trigger_id in given}
    encoded = sorted(trigger_id.encode("utf-8") for trigger_id in ids if trigger_id)
    if not encoded:
        return ""
    return hashlib.sha256(b"\n".join(encoded)).hexdigest()[:WORK_KEY_CHARACTERS]


def batch_identity(identities: Iterable[Identity]) -> Identity:
    """The identity of a batch: its first member that has a conversation, else its first member."""
    members = tuple(identities)
    if not members:
        key = event_key("batch", [])
        return Identity(key, key, key, "the batch is empty")
    return next((member for member in members if member.has_conversation), members[0])
