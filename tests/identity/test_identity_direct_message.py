"""The rule of direct messages: one identity however threaded, one partition a thread."""

from __future__ import annotations

from typing import Any

import pytest
from turnledger.identity import Identity, identify

FIRST = {"ts": "1.1"}
REPLY = {"ts": "2.2", "thread_ts": "1.1"}
ROOT_OF_A_THREAD = {"ts": "1.1", "thread_ts": "1.1"}


def _direct(message: dict[str, Any], channel: str = "D1", kind: str | None = "im") -> Identity:
    event = {"type": "message", "channel": channel, **message}
    event |= {"channel_type": kind} if kind else {}
    return identify("slack", {"type": "event_callback", "event": event})


def _edit(message: dict[str, Any]) -> dict[str, Any]:
    return {"subtype": "message_changed", "ts": "9.9", "message": message}


def _deletion(message: dict[str, Any]) -> dict[str, Any]:
    return {"subtype": "message_deleted", "ts": "9.9", "previous_message": message}


@pytest.mark.parametrize("as_event", [dict, _edit, _deletion])
@pytest.mark.parametrize("message", [FIRST, REPLY, ROOT_OF_A_THREAD], ids=str)
def test_a_direct_message_is_one_conversation(message: Any, as_event: Any) -> None:
    """However a direct message is threaded, edited or deleted, its identity is the bare channel."""
    assert _direct(as_event(message)).conversation_key == "slack:D1"


@pytest.mark.parametrize("as_event", [dict, _edit, _deletion])
def test_a_reply_in_a_direct_message_queues_by_its_thread(as_event: Any) -> None:
    """Only the inbox tells the threads of a direct message apart."""
    assert _direct(as_event(REPLY)).partition_key == "slack:D1:1.1"
    assert _direct(as_event(FIRST)).partition_key == "slack:D1"
    assert _direct(as_event(ROOT_OF_A_THREAD)).partition_key == "slack:D1"


@pytest.mark.parametrize(("channel", "kind"), [("D1", None), ("D1", "app_home"), ("dm7", "im")])
def test_a_direct_message_is_known_by_its_type_or_its_letter(channel: str, kind: Any) -> None:
    """`channel_type` decides, and the id's first letter where there is none."""
    found = _direct(REPLY, channel, kind)
    assert found.conversation_key == f"slack:{channel}"
    assert found.partition_key == f"slack:{channel}:1.1"


@pytest.mark.parametrize(
    ("channel", "kind"),
    [
        ("G1", "mpim"),
        ("C1", "mpim"),
        ("G1", "group"),
        ("G1", None),
        ("C1", "channel"),
        ("C1", None),
    ],
)
def test_groups_and_channels_key_and_queue_by_thread(channel: str, kind: Any) -> None:
    """A group message is no direct message: its identity and its partition are the thread."""
    found = _direct(REPLY, channel, kind)
    assert found.conversation_key == found.partition_key == f"slack:{channel}:1.1"
    top = _direct(FIRST, channel, kind)
    assert top.conversation_key == top.partition_key == f"slack:{channel}:1.1"


@pytest.mark.parametrize(
    ("channel", "kind"),
    [("D1", "channel"), ("D1", "mpim"), ("C1", "im"), ("G1", "im"), ("x1", None), ("D1", "huddle")],
)
def test_what_may_be_a_direct_message_or_not_is_refused(channel: str, kind: Any) -> None:
    """A channel that could be either has no conversation: half of it would be the wrong one."""
    assert not _direct(REPLY, channel, kind).has_conversation
