"""Which turns are for the ledger, and what becomes of an Append."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: Conversations that nothing can come back to: a schedule, an assignment, a wake by another agent.
NOT_REPRODUCIBLE_PREFIX: Final = "event:"


class RunEnd(StrEnum):
    COMPLETED = "completed"
    CRASHED = "crashed"
    SUSPENDED = "suspended"


class Disposition(StrEnum):
    RECORDED = "recorded"
    DUPLICATE = "duplicate"
    SKIPPED = "skipped"


class SkipReason(StrEnum):
    """Why a turn was skipped, in order of precedence."""

    DISABLED = "disabled"
    RUN_CRASHED = "run_crashed"
    RUN_SUSPENDED = "run_suspended"
    NOT_REPRODUCIBLE = "not_reproducible"
    NO_WORK_KEY = "no_work_key"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Conversation:
    """One seat's side of one conversation. Keys are compared byte for byte."""

    agent_handle: str
    conversation_key: str


@dataclass(frozen=True, slots=True)
class TurnKey:
    """What a turn is deduplicated by."""

    conversation: Conversation
    work_key: str


def skip_reason(key: TurnKey, run_end: RunEnd, *, enabled: bool) -> SkipReason | None:
    """The first reason why the turn is not for the ledger, or None. Whether it was forgotten, only the store knows."""
    if not enabled:
        return SkipReason.DISABLED
    if run_end is RunEnd.CRASHED:
        return SkipReason.RUN_CRASHED
    if run_end is RunEnd.SUSPENDED:
        return SkipReason.RUN_SUSPENDED
    if key.conversation.conversation_key.startswith(NOT_REPRODUCIBLE_PREFIX):
        return SkipReason.NOT_REPRODUCIBLE
    if not key.work_key:
        return SkipReason.NO_WORK_KEY
    return None
