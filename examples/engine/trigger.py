"""A trigger: one webhook, with the identity that `turnledger.identity` finds in it.

Take from it: give `identify` the source, the body as it came and the event's name from the header, and let nothing else
decide where a trigger belongs. What a person wrote is read apart from that, and may be missing without harm.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from turnledger.identity import SOURCES, Identity, Message, identify

#: Where a vendor names its event outside the body. Jira and Slack say it inside.
EVENT_HEADERS: Final = {"github": "X-GitHub-Event", "gitlab": "X-Gitlab-Event"}

#: Where each source says who wrote, when, and what; the first that is there counts. Slack's callback wraps its event.
_SENDER: Final = {
    "github": ("comment.user.login", "review.user.login", "sender.login"),
    "gitlab": ("user.name", "user.username", "user_name"),
    "jira": ("comment.author.displayName", "user.displayName"),
    "slack": ("event.user", "event.message.user", "user"),
}
_SENT_AT: Final = {
    "github": ("comment.created_at", "review.submitted_at", "issue.updated_at", "pull_request.updated_at"),
    "gitlab": ("object_attributes.updated_at", "object_attributes.created_at"),
    "jira": ("comment.updated", "comment.created", "issue.fields.updated", "timestamp"),
    "slack": ("event.ts", "ts"),
}
_TEXT: Final = {
    "github": ("comment.body", "review.body", "issue.title", "pull_request.title", "discussion.title"),
    "gitlab": ("object_attributes.note", "object_attributes.title"),
    "jira": ("comment.body", "issue.fields.summary"),
    "slack": ("event.text", "event.message.text", "text"),
}


@dataclass(frozen=True, slots=True)
class Trigger:
    """One webhook as the inbox keeps it."""

    identity: Identity
    message: Message

    @classmethod
    def read(cls, source: str, payload: Mapping[str, Any], event: str | None) -> Self:
        """Read a webhook of a known source. Total: a body that makes no sense gives an `event:` key and a reason."""
        identity = identify(source, payload, event)
        message = Message(
            sender=_first(payload, _SENDER[source]),
            sent_at=_first(payload, _SENT_AT[source]),
            text=_first(payload, _TEXT[source]) or f"({source} sent {event or 'an event'} without a text)",
            trigger_id=identity.trigger_id,
        )
        return cls(identity, message)

    def dump(self) -> str:
        """As ASCII JSON: a stranger's text may hold what no UTF-8 file can."""
        one, other = self.identity, self.message
        keys = [one.conversation_key, one.partition_key, one.trigger_id, one.reason]
        return json.dumps([keys, [other.sender, other.sent_at, other.text, other.trigger_id]])

    @classmethod
    def load(cls, text: str) -> Self:
        """What `dump` wrote."""
        identity, message = json.loads(text)
        return cls(Identity(*identity), Message(*message))


def is_known(source: str) -> bool:
    """Whether there is a rule for the source."""
    return source in SOURCES and source in _TEXT


def _first(payload: Mapping[str, Any], paths: tuple[str, ...]) -> str:
    return next((found for path in paths if (found := _at(payload, path))), "")


def _at(payload: Mapping[str, Any], path: str) -> str:
    """The text at a dotted path; what is no text (Jira's rich documents) as its JSON, what is not there as ""."""
    value: Any = payload
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value)
