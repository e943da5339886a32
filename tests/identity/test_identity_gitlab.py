"""GitLab: issues and merge requests are numbered apart, and comments follow their subject."""

from __future__ import annotations

from typing import Any

import pytest
from turnledger.identity import Identity, identify

PROJECT = {"path_with_namespace": "acme/tools/cli"}
NOTE = {"id": 9, "noteable_type": "Issue", "updated_at": "t1"}


def _gitlab(**payload: Any) -> Identity:
    return identify("gitlab", {"project": PROJECT, **payload})


@pytest.mark.parametrize(
    ("noteable", "field", "key"),
    [
        ("Issue", "issue", "gitlab:acme/tools/cli#12"),
        ("WorkItem", "work_item", "gitlab:acme/tools/cli#12"),
        ("MergeRequest", "merge_request", "gitlab:acme/tools/cli!12"),
    ],
)
def test_a_gitlab_note_belongs_to_its_noteable(noteable: str, field: str, key: str) -> None:
    """A comment is in the thread of what it is on, and only there."""
    note = {"object_kind": "note", "object_attributes": {**NOTE, "noteable_type": noteable}}
    assert _gitlab(**note, **{field: {"iid": 12}}).conversation_key == key
    assert not _gitlab(**note, commit={"iid": 12}).has_conversation


@pytest.mark.parametrize(
    "payload",
    [
        {"object_kind": "pipeline", "object_attributes": {"iid": 12}, "merge_request": {"iid": 12}},
        {"object_kind": "emoji", "object_attributes": {"iid": 12}, "issue": {"iid": 12}},
        {"object_kind": "note", "object_attributes": {**NOTE, "noteable_type": "Epic"}},
        {"object_kind": "note", "object_attributes": {"id": 9}, "issue": {"iid": 12}},
        {"object_kind": "issue", "object_attributes": {"iid": 12}, "project": {"id": 1}},
        {"object_kind": "issue", "object_attributes": {"iid": 12}, "project": None},
        {"object_kind": ["issue"], "object_attributes": {"iid": 12}},
        {"object_attributes": {"iid": 12}},
        {"object_kind": "issue", "iid": 12},
        {"object_kind": "issue", "object_attributes": {"iid": 12}, "project": "acme/tools"},
        {
            "object_kind": "issue",
            "object_attributes": {"iid": 12},
            "project": {"path_with_namespace": "cli"},
        },
    ],
    ids=str,
)
def test_other_gitlab_events_belong_to_none(payload: dict[str, Any]) -> None:
    """A number that is no issue's or merge request's of a named project opens no conversation."""
    assert not _gitlab(**payload).has_conversation


@pytest.mark.parametrize(
    "change",
    [
        {"user": {"username": "ben"}},
        {"changes": {"labels": {}}},
        {"object_attributes": {"id": 5, "iid": 12, "updated_at": "t2", "action": "approved"}},
        {"object_attributes": {"id": 5, "iid": 12, "updated_at": "t1", "action": "merge"}},
        {"object_attributes": {"iid": 12, "title": "without its id"}},
    ],
    ids=str,
)
def test_gitlab_happenings_are_told_apart(change: dict[str, Any]) -> None:
    """Two people's approvals, two edits and two actions are two triggers."""
    approval = {
        "object_kind": "merge_request",
        "user": {"username": "ana"},
        "object_attributes": {"id": 5, "iid": 12, "updated_at": "t1", "action": "approved"},
    }
    assert _gitlab(**approval).trigger_id != _gitlab(**(approval | change)).trigger_id


def test_an_issue_and_a_merge_request_of_one_number_are_two_conversations() -> None:
    """GitLab numbers them apart, so the sign is part of the key."""
    attributes = {"object_attributes": {"iid": 12}}
    issue = _gitlab(object_kind="issue", **attributes)
    merge_request = _gitlab(object_kind="merge_request", **attributes)
    assert issue.conversation_key != merge_request.conversation_key
