"""Slack: `slack:{channel}:{thread}` in channels and group messages, `slack:{channel}` in a DM.

The thread is its first message's `ts`. An edit or a deletion belongs to the thread of the message
it changes, not to the moment it happened. Only messages name their thread: a reaction, a slash
command or a button names a message or a channel at best.
"""

from __future__ import annotations

import re
from typing import Final

from turnledger.identity.canonical import fingerprint
from turnledger.identity.fields import child, optional_child, text
from turnledger.identity.model import Conversation, NoConversation, Payload, Source
from turnledger.identity.slack_envelope import content, unwrap

CHANNEL = re.compile(r"[A-Za-z][A-Za-z0-9]*")
TIMESTAMP = re.compile(r"[0-9]+\.[0-9]+")

POSTS: Final = frozenset({"message", "app_mention"})
ASSISTANT_THREADS: Final = frozenset({"assistant_thread_started", "assistant_thread_context_changed"})

# An event that tells of a change carries the message it is about in here.
CHANGED_MESSAGE: Final = {
    "message_changed": "message",
    "message_replied": "message",
    "message_deleted": "previous_message",
}

# No plain message carries these: with one of them, a lost subtype would date an edit as a post.
CHANGE_FIELDS: Final = ("message", "previous_message", "deleted_ts")

# Only a reply carries these: without its `thread_ts` it would start a thread of its own.
REPLY_FIELDS: Final = ("parent_user_id", "root")

DIRECT_TYPES: Final = frozenset({"im", "app_home"})
SHARED_TYPES: Final = frozenset({"channel", "group", "mpim"})


def find(payload: Payload, _event: str | None) -> Conversation:
    """The thread or direct message that the payload is about."""
    post = unwrap(payload)
    kind = post.get("type")
    if isinstance(kind, str) and kind in ASSISTANT_THREADS:
        return _assistant_thread(post)
    if isinstance(kind, str) and kind in POSTS:
        return _message(post)
    raise NoConversation("only messages and mentions name their thread")


def _message(post: Payload) -> Conversation:
    channel = text(post, "channel", CHANNEL)
    message = _subject(post)
    ts = text(message, "ts", TIMESTAMP)
    local, partition = _keys(channel, ts, _thread(message), direct=_is_direct(post, channel))
    return Conversation(local, f"{channel}:{ts}{_change(post, message)}", partition)


def _keys(channel: str, ts: str, thread: str | None, *, direct: bool) -> tuple[str, str]:
    """Conversation and partition. They differ in one place, here.

    A direct message is one conversation however it is threaded, so its identity is the bare
    channel. The inbox still queues a reply inside it by its thread, so that two threads there
    do not wait for each other.
    """
    if not direct:
        shared = f"{channel}:{thread or ts}"
        return shared, shared
    is_reply = thread is not None and thread != ts
    return channel, f"{channel}:{thread}" if is_reply else channel


def _subject(post: Payload) -> Payload:
    """The message that the event is about: the post itself, or the one that it changes."""
    subtype = post.get("subtype")
    within = CHANGED_MESSAGE.get(subtype) if isinstance(subtype, str) else None
    if within is not None:
        return child(post, within)
    if any(post.get(name) is not None for name in CHANGE_FIELDS):
        raise NoConversation("the event changes a message, and its subtype does not say how")
    return post


def _thread(message: Payload) -> str | None:
    """The thread's first message; None outside a thread, and never where it cannot be read."""
    in_thread = message.get("subtype") == "thread_broadcast" or any(
        message.get(name) is not None for name in REPLY_FIELDS
    )
    if not in_thread and message.get("thread_ts") is None:
        return None
    return text(message, "thread_ts", TIMESTAMP)


def _is_direct(post: Payload, channel: str) -> bool:
    """`channel_type` decides; without one the id's first letter does: D is a DM, C and G are not.

    What neither decides is refused: a DM read as a channel would fall apart into threads.
    """
    kind, letter = post.get("channel_type"), channel[0]
    if isinstance(kind, str) and kind in DIRECT_TYPES and letter not in "CG":
        return True
    if isinstance(kind, str) and kind in SHARED_TYPES and letter != "D":
        return False
    if kind is None and letter in "CDG":
        return letter == "D"
    # Mentions are never sent for direct messages, and never say the channel's type.
    if kind is None and post.get("type") == "app_mention":
        return False
    raise NoConversation("channel_type and channel do not tell a direct message from a channel")


def _assistant_thread(post: Payload) -> Conversation:
    """Opening the assistant opens a thread in the person's DM with the app."""
    opened = child(post, "assistant_thread")
    channel = text(opened, "channel_id", CHANNEL)
    thread = text(opened, "thread_ts", TIMESTAMP)
    if channel[0] != "D":
        raise NoConversation("the assistant's thread is in no direct message")
    local, partition = _keys(channel, "", thread, direct=True)
    return Conversation(local, f"{channel}:{thread}:{fingerprint(post)}", partition)


def _change(post: Payload, message: Payload) -> str:
    """What happened to the message: nothing for its posting, which a mention tells as well.

    An edit that adds a mention arrives as `message_changed` and as `app_mention`; both carry the
    time of the edit.
    """
    subtype = post.get("subtype")
    if subtype == "message_deleted":
        return ":deleted"
    edited = optional_child(message, "edited")
    if edited is not None and subtype != "message_replied":
        return f":edited:{fingerprint(edited.get('ts'))}"
    return "" if message is post else f":{fingerprint([subtype, message, post.get('ts')])}"


SOURCE: Final = Source(find, content)
