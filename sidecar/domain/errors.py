"""The one error type that callers are answered with, and its codes; and what may be said of a bug."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """What went wrong, as `google.rpc.ErrorInfo.reason` names it. `server.status` maps each to its gRPC status."""

    INVALID = "INVALID"
    TOO_LARGE = "TOO_LARGE"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    STORE_FULL = "STORE_FULL"
    STORE_IO = "STORE_IO"
    STORE_CORRUPT = "STORE_CORRUPT"
    STORE_NEWER = "STORE_NEWER"
    CONFIG_INVALID = "CONFIG_INVALID"
    OVERLOADED = "OVERLOADED"
    DEADLINE = "DEADLINE"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class Violation:
    """A field that is missing or malformed: its path in the message, and what its rule is. Never its content."""

    field: str
    description: str


class LedgerError(Exception):
    """An expected failure. `message` is safe to show: it says what to do, without entry content or exception text."""

    def __init__(self, code: Code, message: str, violations: Sequence[Violation] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.violations = tuple(violations)


def place_of(bug: BaseException) -> str:
    """Where in the code a bug is, innermost first. For logs: never the exception's text, which may quote a turn."""
    frames = reversed(traceback.extract_tb(bug.__traceback__))
    return " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
