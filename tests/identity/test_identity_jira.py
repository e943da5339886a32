"""Jira: the issue's current key, and one trigger for the several events of a comment."""

from __future__ import annotations

from typing import Any

import pytest
from turnledger.identity import Identity, identify


def _jira(key: Any = "POC-7", **payload: Any) -> Identity:
    return identify("jira", {"issue": {"id": "1", "key": key}, **payload})


@pytest.mark.parametrize("key", ["POC", "poc-7", "POC-0", "POC-07", "POC-7 ", "-7", "7", 7, None])
def test_a_jira_key_is_an_issue_key(key: Any) -> None:
    """What does not read like an issue's key names no issue."""
    assert not _jira(key).has_conversation


@pytest.mark.parametrize(
    ("items", "key"),
    [
        ([{"field": "Key", "fromString": "POC-7", "toString": "NEW-1"}], "jira:NEW-1"),
        ([{"field": "status"}, {"field": "Key", "fromString": "OLD-1"}], "jira:POC-7"),
        ([{"field": "Link", "fromString": "POC-7", "toString": "NEW-1"}], "jira:POC-7"),
        (["Key", None, 7], "jira:POC-7"),
        ("Key", "jira:POC-7"),
    ],
    ids=str,
)
def test_a_moved_jira_issue_has_its_current_key(items: Any, key: str) -> None:
    """Only a change of the key itself moves an issue, and only away from the key it has."""
    assert _jira(changelog={"id": "1", "items": items}).conversation_key == key


def test_a_jira_move_to_nowhere_has_no_conversation() -> None:
    """A move whose new key cannot be read leaves neither the old key nor a guess."""
    items = [{"field": "Key", "fromString": "POC-7", "toString": ""}]
    assert not _jira(changelog={"items": items}).has_conversation


def test_an_edit_that_brings_a_comment_along_is_not_the_comment() -> None:
    """A transition with a comment is its own happening beside the comment's."""
    comment = {"id": "5", "updated": "t"}
    edit = _jira(comment=comment, changelog={"id": "1", "items": [{"field": "status"}]})
    assert edit.trigger_id != _jira(comment=comment).trigger_id
    assert edit.conversation_key == "jira:POC-7"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"comment": {"id": "5", "updated": "t1"}}, {"comment": {"id": "5", "updated": "t2"}}),
        ({"comment": {"id": "5", "updated": "t"}}, {"comment": {"id": "6", "updated": "t"}}),
        ({"comment": {"id": "5", "created": "t1"}}, {"comment": {"id": "5", "created": "t2"}}),
        ({"comment": {"id": "5", "body": "a"}}, {"comment": {"id": "5", "body": "b"}}),
        ({"comment": {"updated": "t", "body": "a"}}, {"comment": {"updated": "t", "body": "b"}}),
        ({"timestamp": 1}, {"timestamp": 2}),
        (
            {"changelog": {"id": "1", "items": [{"field": "status"}]}},
            {"changelog": {"id": "1", "items": [{"field": "summary"}]}},
        ),
        ({"webhookEvent": "a", "timestamp": 1}, {"webhookEvent": "b", "timestamp": 1}),
        ({"transition": 1}, {"transition": 2}),
        ({"comment": "text", "timestamp": 1}, {"comment": "text", "timestamp": 2}),
        ({"changelog": {"id": "1"}, "timestamp": 1}, {"changelog": {"id": "2"}, "timestamp": 1}),
        (
            {"comment": {"id": "5", "updated": "t"}, "webhookEvent": "comment_updated"},
            {"comment": {"id": "5", "updated": "t"}, "webhookEvent": "comment_deleted"},
        ),
    ],
)
def test_jira_happenings_are_told_apart(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Two edits of a comment, two changes and two bodies are two triggers."""
    assert _jira(**one).trigger_id != _jira(**other).trigger_id


def test_an_issue_s_own_fields_do_not_replace_the_issue() -> None:
    """The whole body is the issue only where it looks like one and holds no other."""
    assert _jira(fields={}).conversation_key == "jira:POC-7"
    assert identify("jira", {"key": "POC-7", "fields": {}}).conversation_key == "jira:POC-7"
    assert not identify("jira", {"key": "POC-7"}).has_conversation
    assert not identify("jira", {"key": "POC-7", "fields": {}, "issue": None}).has_conversation


@pytest.mark.parametrize("time", ["created", "updated"])
def test_one_jira_comment_s_two_events_are_one_trigger(time: str) -> None:
    """The comment's event and the issue's event of one comment agree on what happened."""
    comment = {"id": "5", time: "t"}
    by_comment = _jira(webhookEvent="comment_created", comment=comment, timestamp=1)
    by_issue = _jira(webhookEvent="jira:issue_updated", comment=comment, timestamp=2)
    assert by_comment == by_issue


def test_two_jira_hooks_of_one_change_are_one_trigger() -> None:
    """Hooks differ in what they add to a payload, not in when the change was."""
    change = {"webhookEvent": "jira:issue_updated", "timestamp": 1}
    assert _jira(**change) == _jira(**change, issue_event_type_name="issue_generic", user={})
    edit = {"changelog": {"id": "1", "items": []}}
    assert _jira(**edit, timestamp=1) == _jira(**edit, timestamp=2, user={})


def test_a_jira_comment_without_its_issue_is_still_that_comment() -> None:
    """Where the conversation is lost, the trigger is not: the two deliveries remain one."""
    comment = {"id": "5", "updated": "t"}
    lost = identify("jira", {"webhookEvent": "comment_created", "comment": comment})
    assert not lost.has_conversation
    assert lost.trigger_id == _jira(comment=comment, webhookEvent="jira:issue_updated").trigger_id
