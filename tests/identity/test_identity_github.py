"""GitHub: one number space, many events, and what tells two of them apart."""

from __future__ import annotations

from typing import Any

import pytest
from turnledger.identity import Identity, identify

REPOSITORY = {"full_name": "acme/api"}
ISSUE = {"id": 1, "number": 42, "updated_at": "2026-03-01T10:00:00Z"}


def _github(event: Any = None, **payload: Any) -> Identity:
    return identify("github", {"repository": REPOSITORY, **payload}, event)


@pytest.mark.parametrize(
    ("event", "subject"),
    [
        ("issues", "issue"),
        ("issue_comment", "issue"),
        ("pull_request", "pull_request"),
        ("pull_request_review", "pull_request"),
        ("pull_request_review_comment", "pull_request"),
        ("pull_request_review_thread", "pull_request"),
        ("discussion", "discussion"),
        ("discussion_comment", "discussion"),
    ],
)
def test_a_github_event_belongs_to_its_subject(event: str, subject: str) -> None:
    """Issues, pull requests and discussions are one number space, with or without the name."""
    payload: dict[str, Any] = {subject: {"id": 1, "number": 42}, "comment": {"id": 2}}
    assert _github(event, **payload).conversation_key == "github:acme/api#42"
    assert _github(None, **payload).conversation_key == "github:acme/api#42"
    assert not _github("check_run", **payload).has_conversation


@pytest.mark.parametrize("event", ["push", "star", "installation", "sub_issues", "issues.opened"])
def test_other_github_events_belong_to_none(event: str) -> None:
    """An event of another name has no conversation, whatever numbers it carries."""
    assert not _github(event, issue=ISSUE, number=42, alert={"number": 42}).has_conversation


@pytest.mark.parametrize(
    "payload",
    [
        {"issue": ISSUE, "pull_request": ISSUE},
        {"sub_issue": ISSUE, "parent_issue": ISSUE},
        {"milestone": {"number": 42}},
        {"workflow_run": {"pull_requests": [{"number": 42}]}},
        {"issue": [ISSUE]},
        {"issue": ISSUE, "repository": "acme/api"},
        {"issue": ISSUE, "repository": {"full_name": "api"}},
        {"issue": ISSUE, "repository": {"full_name": "acme/api/v2"}},
        {"issue": ISSUE, "repository": {"full_name": "acme /api"}},
        {"issue": {"number": 42.0}},
        {"issue": {"number": 2**63}},
        {"issue": {"number": -42}},
    ],
    ids=str,
)
def test_github_payloads_that_are_not_clear_belong_to_none(payload: dict[str, Any]) -> None:
    """Two subjects, a list of them or a strange name open no conversation."""
    assert not _github(None, **payload).has_conversation


@pytest.mark.parametrize("number", [1, 42, 2**63 - 1])
def test_every_number_that_github_can_give_is_a_conversation(number: int) -> None:
    """Numbers are positive and fit into 64 bits; each of them stands in the key digit for digit."""
    found = _github("issues", issue={"id": 1, "number": number})
    assert found.conversation_key == f"github:acme/api#{number}"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"issue": {}}, "number is missing"),
        ({"issue": {"number": "42"}}, "number is not a positive integer"),
        ({"issue": "text"}, "issue is not an object"),
        ({"issue": ISSUE, "repository": {}}, "full_name is missing"),
        ({"issue": ISSUE, "repository": {"full_name": "secret"}}, "full_name is not of the"),
    ],
)
def test_a_reason_names_the_field_and_not_what_it_held(payload: Any, reason: str) -> None:
    """Reasons go to logs, so they say which field, and whether it was there, and no more."""
    found = _github("issues", **payload)
    assert found.reason.startswith(reason)
    assert "secret" not in found.reason


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"action": "labeled", "label": {"id": 1}}, {"action": "labeled", "label": {"id": 2}}),
        ({"action": "edited", "changes": {"a": 1}}, {"action": "edited", "changes": {"a": 2}}),
        ({"action": "closed"}, {"action": "reopened"}),
        ({"comment": {"id": 1}, "action": "created"}, {"comment": {"id": 2}, "action": "created"}),
        ({"comment": {"id": 1}, "action": "created"}, {"comment": {"id": 1}, "action": "deleted"}),
        ({"comment": {"body": "a"}, "action": "created"}, {"comment": {"body": "b"}}),
        ({"comment": {"id": 1, "updated_at": "t1"}}, {"comment": {"id": 1, "updated_at": "t2"}}),
    ],
)
def test_github_happenings_are_told_apart(one: dict[str, Any], other: dict[str, Any]) -> None:
    """What happened decides, not where: two happenings in one second are two triggers."""
    assert _github(issue=ISSUE, **one).trigger_id != _github(issue=ISSUE, **other).trigger_id


@pytest.mark.parametrize(
    "detail",
    [
        "after",
        "answer",
        "assignee",
        "before",
        "changes",
        "label",
        "milestone",
        "requested_reviewer",
        "requested_team",
        "type",
    ],
)
def test_what_a_github_happening_is_about_tells_it_apart(detail: str) -> None:
    """Two people assigned, two reviewers asked, two commits pushed: two triggers each."""
    one, other = (_github(issue=ISSUE, action="x", **{detail: {"id": id_}}) for id_ in (1, 2))
    assert one.conversation_key == other.conversation_key
    assert one.trigger_id != other.trigger_id


def test_a_github_hook_s_envelope_is_no_happening() -> None:
    """The repository's hook, the organization's and an app's tell of one happening."""
    label: dict[str, Any] = {"action": "labeled", "label": {"id": 1}, "issue": ISSUE}
    by_app = label | {"installation": {"id": 5}, "organization": {"id": 6}, "sender": {"id": 7}}
    assert _github("issues", **label) == _github("issues", **by_app)


@pytest.mark.parametrize(
    ("action", "part"),
    [
        ("created", {"comment": {"id": 1}}),
        ("deleted", {"comment": {"id": 1}}),
        ("submitted", {"review": {"id": 1}}),
        ("opened", {}),
    ],
)
def test_what_happens_once_is_told_by_its_name(action: str, part: dict[str, Any]) -> None:
    """A later look at the same thing is no second happening: it was made once, and goes once."""
    changed = {name: {**value, "updated_at": "later"} for name, value in part.items()}
    first = _github(issue=ISSUE, action=action, **part)
    assert first == _github(issue={**ISSUE, "updated_at": "later"}, action=action, **changed)
    edited = _github(issue={**ISSUE, "updated_at": "later"}, action="edited", **changed)
    assert edited.trigger_id != first.trigger_id


@pytest.mark.parametrize("name", ["comment", "review", "thread"])
def test_two_parts_of_one_pull_request_are_two_triggers(name: str) -> None:
    """Two reviews, comments or review threads of one moment are told apart by their ids."""
    ids = ({"id": 1}, {"id": 2}, {"node_id": "a"}, {"node_id": "b"})
    found = {_github(pull_request=ISSUE, action="resolved", **{name: part}).trigger_id for part in ids}
    assert len(found) == len(ids)
