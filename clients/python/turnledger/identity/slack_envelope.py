"""Slack's envelopes: an event comes bare, in an Events API callback, or in a Socket Mode one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from turnledger.identity.fields import child
from turnledger.identity.model import NoConversation, Payload

# What belongs to one delivery alone. A callback repeated for another authorization, or sent
# again under another event id, is the same happening.
DELIVERY: Final = frozenset({"token", "event_id", "event_context", "authorizations", "authed_users", "authed_teams"})


def unwrap(payload: Payload) -> Payload:
    """The event itself."""
    kind = payload.get("type")
    if kind == "events_api":
        return unwrap_callback(child(payload, "payload"))
    return unwrap_callback(payload) if kind == "event_callback" else payload


def unwrap_callback(payload: Payload) -> Payload:
    """The event inside a callback."""
    if payload.get("type") != "event_callback":
        raise NoConversation("the envelope holds no event")
    return child(payload, "event")


def content(payload: Payload) -> object:
    """What stays the same when the event is delivered again.

    The time of the callback stays only where the event has no time of its own: it is then all
    that tells two equal events apart.
    """
    inner = payload.get("payload") if payload.get("type") == "events_api" else payload
    if not isinstance(inner, Mapping):
        return payload
    event = inner.get("event")
    timed = isinstance(event, Mapping) and event.get("event_ts") is not None
    left_out = DELIVERY | {"event_time"} if timed else DELIVERY
    return {key: value for key, value in inner.items() if key not in left_out}
