"""What one turn leaves behind, as an engine says it. Named as in `turnledger/v1/entry.proto`, whose rules hold."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class CallKind(StrEnum):
    """What a tool call could do; it decides what the next turn is told."""

    #: Changed, or may have changed, something outside. Always shown, and the next turn is told not to run it again.
    WRITE = "write"
    #: Positively known to change nothing. The first 12 are shown, marked "(read)".
    READ = "read"
    #: Discovery of tools and the like. Never shown.
    META = "meta"

    @classmethod
    def of(cls, kind: object) -> "CallKind":
        """The kind named; WRITE for whatever is not known, since a write that passes for a read would be run twice."""
        try:
            return cls(kind)  # type: ignore[arg-type]  # any object is allowed, and most are refused
        except ValueError:
            return cls.WRITE


class RunEnd(StrEnum):
    """How a run ended. Only a completed run leaves an entry."""

    COMPLETED = "completed"
    CRASHED = "crashed"
    SUSPENDED = "suspended"


@dataclass(frozen=True, slots=True)
class Reply:
    """The turn's final text, which reached its party. It may be empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Unsent:
    """The turn's final text, which nobody received. It may be empty; `settle` makes a reply of it later."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call. `arguments` is the JSON text as the model gave it; `error` is empty unless `failed`."""

    name: str
    arguments: str
    kind: CallKind
    failed: bool
    error: str
    sensitive: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """The material of one completed turn. `completed_at` carries a time zone."""

    turn_id: str
    completed_at: datetime
    trigger: str
    intent: str
    calls: tuple[ToolCall, ...]
    outcome: Reply | Unsent
    completed_work: str
    blocked_on: str
    decision: str
