"""From a raw payload to its identity. Total: whatever comes in, an identity comes out."""

from __future__ import annotations

from collections.abc import Mapping

from turnledger.identity.canonical import event_key, fingerprint
from turnledger.identity.model import (
    MAX_KEY_BYTES,
    Conversation,
    Identity,
    NoConversation,
    Payload,
    Source,
)
from turnledger.identity.registry import SOURCES


def identify(
    source: str,
    payload: Payload,
    event: str | None = None,
    *,
    sources: Mapping[str, Source] = SOURCES,
) -> Identity:
    """The identity of one trigger; it never raises.

    `payload` is the decoded body as it came, `event` the source's own name for it where that
    travels outside the body (GitHub's `X-GitHub-Event`). What cannot be understood for certain
    gets an `event:` key and a reason, never a guess. `sources` adds sources of your own.
    """
    known = sources.get(source) if isinstance(source, str) else None
    if known is None:
        return _event(source, payload, NoConversation("the source is not known"))
    if not isinstance(payload, Mapping):
        return _event(source, payload, NoConversation("the payload is not an object"))
    if event is not None and not isinstance(event, str):
        return _event(source, payload, NoConversation("the event's name is not text"))
    found = _ask(known, payload, event or None)
    if isinstance(found, NoConversation):
        return _event(source, _content(known, payload), found)
    return _identity(source, payload, found)


def _ask(source: Source, payload: Payload, event: str | None) -> Conversation | NoConversation:
    try:
        return source.find(payload, event)
    except NoConversation as none:
        return none
    except Exception as error:  # noqa: BLE001  a rule that somebody added must not take the trigger down
        return NoConversation(f"the source's rule failed with {type(error).__name__}")


def _content(source: Source, payload: Payload) -> object:
    try:
        return source.content(payload)
    except Exception:  # noqa: BLE001  as above; the whole payload still tells triggers apart
        return payload


def _identity(source: str, payload: Payload, found: Conversation) -> Identity:
    conversation = f"{source}:{found.local}"
    partition = f"{source}:{found.partition or found.local}"
    if not (found.local and fits(conversation) and fits(partition)):
        return _event(source, payload, NoConversation("the key would not be 1 to 512 bytes"))
    return Identity(conversation, partition, _trigger_id(source, found.trigger, payload))


def _event(source: object, content: object, none: NoConversation) -> Identity:
    key = event_key(source, content)
    trigger = _trigger_id(source, none.trigger, content) if none.trigger else key
    return Identity(key, key, trigger, none.reason)


def _trigger_id(source: object, trigger: str, content: object) -> str:
    named = f"{source}:{trigger}"
    return named if trigger and fits(named) else f"{source}:{fingerprint(content)}"


def fits(key: str) -> bool:
    """Whether the ledger takes `key`, which its prefix keeps from being empty."""
    try:
        return len(key.encode("utf-8")) <= MAX_KEY_BYTES
    except UnicodeEncodeError:
        return False
