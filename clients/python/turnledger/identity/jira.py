"""Jira, Cloud and Server: `jira:{issue key}`, the key that the issue has now.

Whatever carries an issue with a key is about that issue, with or without a `webhookEvent`
(workflow functions and automation rules send none). Server's `comment_*` events, links, work logs,
projects and sprints carry no key: a number in a URL is not one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, cast

from turnledger.identity.canonical import fingerprint
from turnledger.identity.fields import child, optional_child, text
from turnledger.identity.model import Conversation, NoConversation, Payload, Source

ISSUE_KEY = re.compile(r"[A-Z][A-Z0-9_]*-[1-9][0-9]*")


def find(payload: Payload, _event: str | None) -> Conversation:
    """The issue that the payload is about."""
    comment = _comment_happening(payload)
    try:
        key = _current_key(payload, text(_issue(payload), "key", ISSUE_KEY))
    except NoConversation as none:
        raise NoConversation(none.reason, trigger=comment) from None
    return Conversation(key, comment or f"{key}:{_issue_happening(payload)}")


def _issue(payload: Payload) -> Payload:
    """Automation rules can send the issue itself as the whole body."""
    bare = "issue" not in payload and optional_child(payload, "fields") is not None
    return payload if bare else child(payload, "issue")


def _current_key(payload: Payload, key: str) -> str:
    """A move's snapshot can still show the old key; the changelog then says the new one."""
    for item in _changes(payload):
        if item.get("field") == "Key" and item.get("fromString") == key:
            return text(item, "toString", ISSUE_KEY)
    return key


def _changes(payload: Payload) -> Iterator[Payload]:
    changelog = optional_child(payload, "changelog")
    items = changelog.get("items") if changelog is not None else None
    if isinstance(items, list):
        yield from (cast(Payload, item) for item in items if isinstance(item, Mapping))


def _comment_happening(payload: Payload) -> str:
    """One comment arrives as `comment_created` and as `jira:issue_updated`; it is one happening.

    An edit of the issue that brings a comment along is the edit: its changelog tells it apart.
    """
    comment = optional_child(payload, "comment")
    if comment is None or any(_changes(payload)):
        return ""
    which, when = comment.get("id"), comment.get("updated") or comment.get("created")
    if which is None or when is None:
        return ""
    deleted = payload.get("webhookEvent") == "comment_deleted"
    return f"comment:{fingerprint([which, when, deleted])}"


def _issue_happening(payload: Payload) -> str:
    changelog = optional_child(payload, "changelog") or {}
    if changelog.get("id") is not None:
        return fingerprint(["changelog", changelog["id"], changelog.get("items")])
    if payload.get("timestamp") is not None:
        return fingerprint([payload.get("webhookEvent"), payload["timestamp"]])
    return fingerprint(payload)


SOURCE: Final = Source(find)
