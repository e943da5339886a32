"""Slack messages: one post is one trigger, and edits belong to the thread they change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turnledger.identity import Identity, identify

# A busy machine is no failure.
unhurried = settings(deadline=None)

timestamps = st.from_regex(r"[0-9]{10}\.[0-9]{6}", fullmatch=True)
channels = st.from_regex(r"[CDG][A-Z0-9]{1,10}", fullmatch=True)
TYPE_OF_LETTER = {"C": "channel", "D": "im", "G": "group"}


def _callback(**event: Any) -> dict[str, Any]:
    return {"type": "event_callback", "event_id": "Ev1", "event_time": 1, "event": event}


def _slack(**event: Any) -> Identity:
    return identify("slack", _callback(**event))


@unhurried
@given(channels, timestamps, st.none() | timestamps)
def test_a_message_and_its_mention_are_one_trigger(channel: str, ts: str, thread: str | None) -> None:
    """`message` and `app_mention` of one post agree in all there is, whatever the channel."""
    post = {"channel": channel, "ts": ts} | ({"thread_ts": thread} if thread else {})
    kind = TYPE_OF_LETTER[channel[0]]
    message = _slack(type="message", channel_type=kind, client_msg_id="m", **post)
    assert message == _slack(type="app_mention", **post)
    assert message.has_conversation


@unhurried
@given(channels, timestamps, timestamps, st.none() | timestamps)
def test_an_edit_that_adds_a_mention_is_one_trigger(channel: str, ts: str, edited: str, thread: str | None) -> None:
    """`message_changed` and `app_mention` of one edit agree, and are not the post itself."""
    post = {"ts": ts, "edited": {"user": "U1", "ts": edited}}
    post |= {"thread_ts": thread} if thread else {}
    mention = _slack(type="app_mention", channel=channel, **post)
    change = _slack(type="message", subtype="message_changed", channel=channel, ts=edited, message=post)
    assert mention == change
    del post["edited"]
    assert _slack(type="app_mention", channel=channel, **post).trigger_id != mention.trigger_id


@unhurried
@given(timestamps, timestamps, timestamps)
def test_an_edit_and_a_deletion_stay_in_their_thread(thread: str, ts: str, now: str) -> None:
    """The moment of a change never opens a thread of its own."""
    message = {"ts": ts, "thread_ts": thread}
    outer = {"type": "message", "channel": "C1", "channel_type": "channel", "ts": now}
    edit = _slack(subtype="message_changed", message=message, **outer)
    deletion = _slack(subtype="message_deleted", previous_message=message, **outer)
    assert edit.conversation_key == deletion.conversation_key == f"slack:C1:{thread}"
    assert edit.trigger_id != deletion.trigger_id


def test_a_mention_is_never_a_direct_message_by_its_looks() -> None:
    """Mentions are not sent for direct messages: an id of any look is a channel there."""
    post = {"channel": "redacted", "ts": "1.1"}
    assert _slack(type="app_mention", **post).conversation_key == "slack:redacted:1.1"
    assert not _slack(type="message", **post).has_conversation


def test_a_reply_s_notice_belongs_to_the_thread() -> None:
    """`message_replied` tells of the thread's first message, at a time of its own."""
    root = {"ts": "1.1", "thread_ts": "1.1", "edited": {"ts": "5.5"}}
    outer = {"type": "message", "subtype": "message_replied", "channel": "C1", "message": root}
    first, second = _slack(ts="2.2", **outer), _slack(ts="3.3", **outer)
    assert first.conversation_key == second.conversation_key == "slack:C1:1.1"
    assert first.trigger_id != second.trigger_id


@pytest.mark.parametrize("kind", ["assistant_thread_started", "assistant_thread_context_changed"])
def test_the_assistant_s_thread_is_in_its_direct_message(kind: str) -> None:
    """Opening the assistant is part of the DM, and queues with the thread that it opens."""
    found = _slack(type=kind, assistant_thread={"channel_id": "D1", "thread_ts": "1.1"})
    assert (found.conversation_key, found.partition_key) == ("slack:D1", "slack:D1:1.1")


def test_two_edits_are_two_triggers_and_one_edit_is_one() -> None:
    """Each edit counts once, however often it is delivered."""

    def edit(when: str) -> str:
        message = {"ts": "1.1", "edited": {"ts": when}}
        outer = {"type": "message", "subtype": "message_changed", "channel": "C1", "ts": when}
        return _slack(message=message, **outer).trigger_id

    assert edit("2.0") == edit("2.0")
    assert edit("2.0") != edit("3.0")


@pytest.mark.parametrize("subtype", ["bot_message", "file_share", "me_message", "channel_join"])
def test_every_kind_of_post_keys_alike(subtype: str) -> None:
    """Who posted, and with what attached, does not change where a post stands."""
    found = _slack(type="message", subtype=subtype, channel="C1", channel_type="channel", ts="1.1")
    assert found.conversation_key == "slack:C1:1.1"


@pytest.mark.parametrize(
    "lost",
    [
        {"message": {"ts": "1.1"}},
        {"previous_message": {"ts": "1.1"}},
        {"deleted_ts": "1.1"},
        {"parent_user_id": "U1"},
        {"root": {"ts": "1.1"}},
        {"subtype": "thread_broadcast"},
        {"thread_ts": ""},
        {"thread_ts": 1.1},
        {"thread_ts": "1.1\n"},
        {"channel": "1718"},
        {"channel": "C1:1.1"},
        {"ts": "1718"},
        {"channel_type": ""},
        {"channel_type": "C"},
        {"channel_type": ["channel"]},
        {"subtype": "message_changed", "message": "text"},
        {"subtype": "message_changed"},
        {"subtype": "message_deleted", "deleted_ts": "1.1"},
    ],
    ids=str,
)
def test_a_post_that_lost_something_opens_no_thread(lost: dict[str, Any]) -> None:
    """A change without its subtype or a reply without its thread gets no conversation."""
    whole = {"type": "message", "channel": "C1", "channel_type": "channel", "ts": "2.2"}
    assert _slack(**whole).has_conversation
    found = _slack(**(whole | lost))
    assert not found.has_conversation
    assert found.reason


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "url_verification", "challenge": "c"},
        {"type": "block_actions", "channel": {"id": "C1"}, "message": {"ts": "1.1"}},
        {"type": "view_submission", "view": {"id": "V1"}},
        {"command": "/ask", "channel_id": "D1", "text": "x"},
        {"type": "events_api", "payload": {"type": "slash_commands"}},
        {"type": "events_api", "payload": "text"},
        {"type": "event_callback"},
        {"type": "event_callback", "event": [{"type": "message"}]},
        _callback(type="reaction_added", item={"type": "message", "channel": "D1", "ts": "1.1"}),
        _callback(type="pin_added", channel_id="C1", item={"message": {"ts": "1.1"}}),
        _callback(type="app_home_opened", channel="D1", user="U1"),
        _callback(type="channel_rename", channel={"id": "C1"}),
        _callback(type="huddle", channel="C1", channel_type="channel", ts="1.1"),
        _callback(
            type="assistant_thread_started",
            assistant_thread={"channel_id": "C1", "thread_ts": "1.1"},
        ),
    ],
    ids=lambda payload: str(payload.get("event", payload))[:60],
)
def test_what_names_no_thread_has_no_conversation(payload: dict[str, Any]) -> None:
    """Interactions, reactions, commands and workspace events belong to no conversation."""
    found = identify("slack", payload)
    assert not found.has_conversation
    assert found.trigger_id == found.conversation_key


def test_events_without_a_time_are_told_apart_by_the_callback() -> None:
    """Two equal workspace events are two; one of them delivered twice is one."""
    once = identify("slack", _callback(type="goodbye"))
    again = identify("slack", _callback(type="goodbye") | {"event_id": "Ev2", "token": "t"})
    later = identify("slack", _callback(type="goodbye") | {"event_time": 2})
    assert once == again
    assert once != later


def test_an_event_with_a_time_ignores_the_callback_s() -> None:
    """The time of a delivery does not make a second happening of an event that has its own."""
    event = _callback(type="app_uninstalled", event_ts="1.1")
    assert identify("slack", event) == identify("slack", event | {"event_time": 2})


@pytest.mark.parametrize(
    "field",
    ["authed_teams", "authed_users", "authorizations", "event_context", "event_id", "token"],
)
def test_what_belongs_to_one_delivery_is_no_part_of_what_happened(field: str) -> None:
    """A callback that differs in its delivery alone is the same trigger; any other is not."""
    event = _callback(type="goodbye")
    assert identify("slack", event) == identify("slack", event | {field: "other"})
    assert identify("slack", event) != identify("slack", event | {"team_id": "other"})
    in_socket_mode = {"type": "events_api", "envelope_id": "e1", "payload": event}
    assert identify("slack", in_socket_mode) == identify("slack", event)
