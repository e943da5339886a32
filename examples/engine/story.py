"""Invented webhooks, each as its vendor sends it, cut to what matters."""

from typing import Any


def jira_comment(number: int, text: str, *, issue: str = "SHOP-7", sender: str = "Mira") -> dict[str, Any]:
    """A comment on an issue of Jira Cloud."""
    return {
        "webhookEvent": "comment_created",
        "timestamp": 1_772_442_840_000 + number,
        "issue": {"id": "10007", "key": issue, "fields": {"summary": "Charged twice"}},
        "comment": {
            "id": str(number),
            "created": f"2026-03-02T09:{number % 60:02}:00.000+0000",
            "author": {"displayName": sender},
            "body": text,
        },
    }


def slack_direct_message(ts: str, text: str, *, thread: str | None = None, event_id: str = "Ev1") -> dict[str, Any]:
    """A direct message to the seat, or a reply in a thread inside it."""
    event = {"type": "message", "channel": "D0SEAT", "channel_type": "im", "user": "U0JONAS", "text": text, "ts": ts}
    if thread:
        event["thread_ts"] = thread
    return {"type": "event_callback", "event_id": event_id, "event": event}


def github_comment(number: int, text: str, *, issue: int = 42) -> dict[str, Any]:
    """A comment on an issue; its event travels in the header X-GitHub-Event."""
    return {
        "action": "created",
        "repository": {"full_name": "acme/shop"},
        "issue": {"id": 9000 + issue, "number": issue, "title": "Checkout fails"},
        "comment": {
            "id": number,
            "body": text,
            "user": {"login": "ben"},
            "created_at": f"2026-03-03T10:{number % 60:02}:00Z",
        },
        "sender": {"login": "ben"},
    }


def gitlab_note(number: int, text: str, *, merge_request: int = 5) -> dict[str, Any]:
    """A note on a merge request."""
    return {
        "object_kind": "note",
        "user": {"name": "Ada", "username": "ada"},
        "project": {"path_with_namespace": "acme/tools/deploy"},
        "object_attributes": {
            "id": number,
            "note": text,
            "noteable_type": "MergeRequest",
            "updated_at": f"2026-03-04 11:{number % 60:02}:00 UTC",
        },
        "merge_request": {"id": 500 + merge_request, "iid": merge_request, "title": "Faster rollout"},
    }
