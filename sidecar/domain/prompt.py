"""One round of a turn, and the sizes of the message that it got."""

from dataclasses import dataclass
from enum import StrEnum

from sidecar.domain.eligibility import Conversation


class Phase(StrEnum):
    """The kind of round. Only EXECUTE gets the block."""

    EXECUTE = "execute"
    REVIEW = "review"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Round:
    """One round, counted from 1 within its phase. Sizes are bytes of UTF-8, None where the caller gave none."""

    conversation: Conversation
    turn_id: str
    phase: Phase
    iteration: int
    system_bytes: int | None = None
    tool_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PromptSize:
    """Bytes of UTF-8 of a message and of its parts as given, without the headings that composition adds."""

    user_bytes: int
    history_bytes: int
    task_bytes: int
    context_bytes: int
    prior_work_bytes: int
    approximate_tokens: int
