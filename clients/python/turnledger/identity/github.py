"""GitHub: issues, pull requests and discussions are numbered together within a repository.

The key is `github:{owner}/{repository}#{number}`: a comment on a pull request arrives as an issue's
comment, and is the same conversation. Other events carry numbers too (alerts, milestones, runs);
those number something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from turnledger.identity.canonical import fingerprint
from turnledger.identity.fields import child, number, optional_child, text
from turnledger.identity.model import Conversation, NoConversation, Payload, Source

# The event's name travels in a header; what it is about travels in the body under this name.
SUBJECT_OF_EVENT: Final[Mapping[str, str]] = {
    "issues": "issue",
    "issue_comment": "issue",
    "pull_request": "pull_request",
    "pull_request_review": "pull_request",
    "pull_request_review_comment": "pull_request",
    "pull_request_review_thread": "pull_request",
    "discussion": "discussion",
    "discussion_comment": "discussion",
}
SUBJECTS: Final = ("issue", "pull_request", "discussion")

FULL_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]+")

# The part of the subject that a trigger is about, the most particular first.
PARTS: Final = ("comment", "review", "thread")

# These happen once to a thing; a later delivery of them is never a second happening.
ONCE: Final = frozenset({"created", "opened", "submitted", "deleted"})

# What tells two happenings of one kind apart that fall into one second. The envelope
# (installation, organization, sender) stays out: it differs between hooks for one happening.
DETAILS: Final = (
    "changes",
    "label",
    "assignee",
    "milestone",
    "requested_reviewer",
    "requested_team",
    "before",
    "after",
    "answer",
    "type",
)


def find(payload: Payload, event: str | None) -> Conversation:
    """The issue, pull request or discussion that the payload is about."""
    name = _subject_name(payload, event)
    repository = text(child(payload, "repository"), "full_name", FULL_NAME)
    subject = child(payload, name)
    local = f"{repository}#{_number(payload, subject)}"
    return Conversation(local, f"{local}:{_happening(payload, subject)}")


def _subject_name(payload: Payload, event: str | None) -> str:
    present = [name for name in SUBJECTS if payload.get(name) is not None]
    if event is not None and event not in SUBJECT_OF_EVENT:
        raise NoConversation("this event is about no issue, pull request or discussion")
    if len(present) != 1:
        raise NoConversation("the payload is not about one issue, pull request or discussion")
    if event is not None and SUBJECT_OF_EVENT[event] != present[0]:
        raise NoConversation("the event's name and its payload do not agree")
    return present[0]


def _number(payload: Payload, subject: Payload) -> int:
    found = number(subject, "number")
    if payload.get("number") is not None and number(payload, "number") != found:
        raise NoConversation("the payload gives two numbers")
    return found


def _happening(payload: Payload, subject: Payload) -> str:
    kind, part = _part(payload, subject)
    action = payload.get("action")
    which = part.get("id") or part.get("node_id")
    if which and isinstance(action, str) and action in ONCE:
        return f"{kind}:{fingerprint([which, action])}"
    when = part.get("updated_at") or subject.get("updated_at")
    if not (which and when):
        return f"{kind}:{fingerprint(payload)}"
    details = [payload.get(name) for name in DETAILS]
    return f"{kind}:{fingerprint([which, action, when, details])}"


def _part(payload: Payload, subject: Payload) -> tuple[str, Payload]:
    for name in PARTS:
        part = optional_child(payload, name)
        if part is not None:
            return name, part
    return "subject", subject


SOURCE: Final = Source(find)
