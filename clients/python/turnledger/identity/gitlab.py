"""GitLab: `gitlab:{project path}#{iid}` for issues and work items, `!{iid}` for merge requests.

Issues and merge requests are numbered apart, hence two signs; tasks, incidents and other work
items of a project share the issues' numbers. The body names its own kind, and the header may say
`Issue Hook` for a work item or `System Hook` for anything, so the event's name is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from turnledger.identity.canonical import fingerprint
from turnledger.identity.fields import child, number, optional_child, text
from turnledger.identity.model import Conversation, NoConversation, Payload, Source

SIGN_OF_KIND: Final[Mapping[str, str]] = {"issue": "#", "work_item": "#", "merge_request": "!"}

# Where a comment's subject stands in the payload. Commits, snippets and epics are no threads of
# a project; they are left out on purpose.
KIND_OF_NOTEABLE: Final[Mapping[str, str]] = {
    "Issue": "issue",
    "WorkItem": "work_item",
    "MergeRequest": "merge_request",
}

PROJECT_PATH = re.compile(r"[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+")


def find(payload: Payload, _event: str | None) -> Conversation:
    """The issue, work item or merge request that the payload is about."""
    kind, subject = _subject(payload)
    project = text(child(payload, "project"), "path_with_namespace", PROJECT_PATH)
    local = f"{project}{SIGN_OF_KIND[kind]}{number(subject, 'iid')}"
    return Conversation(local, f"{local}:{_happening(payload)}")


def _subject(payload: Payload) -> tuple[str, Payload]:
    kind = payload.get("object_kind")
    attributes = child(payload, "object_attributes")
    if kind == "note":
        return _noteable(payload, attributes)
    if not isinstance(kind, str) or kind not in SIGN_OF_KIND:
        raise NoConversation("this kind of event is about no issue or merge request")
    return kind, attributes


def _noteable(payload: Payload, note: Payload) -> tuple[str, Payload]:
    noteable = note.get("noteable_type")
    kind = KIND_OF_NOTEABLE.get(noteable) if isinstance(noteable, str) else None
    if kind is None:
        raise NoConversation("the comment is on no issue or merge request")
    return kind, child(payload, kind)


def _happening(payload: Payload) -> str:
    """What happened, told by the object's own fields.

    One happening can reach a project's hook, a group's and the system's, and as a note or as a
    confidential note: the kind of hook is no part of it. The user is, for approvals.
    """
    attributes = child(payload, "object_attributes")
    which, when = attributes.get("id"), attributes.get("updated_at")
    if which is None or when is None:
        return fingerprint(payload)
    what = [attributes.get("action"), attributes.get("oldrev"), payload.get("changes")]
    who = (optional_child(payload, "user") or {}).get("username")
    return fingerprint([payload.get("object_kind"), which, when, what, who])


SOURCE: Final = Source(find)
