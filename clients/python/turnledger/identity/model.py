"""What a rule finds in a payload, and the identity that is made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# The ledger refuses a longer key, so a longer one would lose the turn rather than misfile it.
MAX_KEY_BYTES = 512

EVENT_PREFIX = "event:"

# A payload is decoded JSON that a stranger sent: nothing about its values is known.
Payload = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Identity:
    """Which conversation a trigger belongs to, how the inbox queues it, and what happened.

    Both keys are 1 to 512 bytes of UTF-8. `reason` says why there is no conversation, and is
    empty where there is one; it names fields and never repeats what the payload held.
    """

    conversation_key: str
    partition_key: str
    trigger_id: str
    reason: str = ""

    @property
    def has_conversation(self) -> bool:
        """Whether turns of this trigger can be found again; `event:` keys never can."""
        return not self.conversation_key.startswith(EVENT_PREFIX)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A rule's answer, without the source's prefix.

    `local` names the thread within its source, `trigger` what happened there, and `partition`
    the inbox's queue where that is not the thread itself.
    """

    local: str
    trigger: str
    partition: str = ""


class NoConversation(Exception):
    """A rule raises this when the payload names no conversation, or none that can be trusted.

    `trigger` may still say what happened: a comment without its issue is that comment.
    """

    def __init__(self, reason: str, *, trigger: str = "") -> None:
        """`reason` is shown to operators: it names fields, never values."""
        super().__init__(reason)
        self.reason = reason
        self.trigger = trigger


Rule = Callable[[Payload, str | None], Conversation]


def everything(payload: Payload) -> object:
    """The default of `Source.content`: the whole payload is what happened."""
    return payload


@dataclass(frozen=True, slots=True)
class Source:
    """One source: its rule, and the part of a payload that stays the same when it comes again.

    `content` leaves out what belongs to one delivery alone (delivery ids, tokens). It is read
    only for triggers that belong to no conversation.
    """

    find: Rule
    content: Callable[[Payload], object] = everything
