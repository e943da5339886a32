"""Orders: texts that the sidecar would like shorter, from the seat's auxiliary model. Sizes are bytes of UTF-8."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class OrderKind(StrEnum):
    """What is to be rewritten."""

    #: The value of one argument.
    ARGUMENT = "argument"
    #: The error of one failed call.
    ERROR = "error"
    #: The words of the account for one whole entry.
    NOTE = "note"


class Verdict(StrEnum):
    """What the sidecar said of a rewrite."""

    #: Stored; the next block shows it.
    ACCEPTED = "accepted"
    #: The order is filled already, or its entry changed or went.
    NOT_OPEN = "not_open"
    ORIGINAL_MISMATCH = "original_mismatch"
    TOO_LONG = "too_long"
    EMPTY = "empty"
    #: It repeats the instructions.
    ECHO = "echo"
    #: It holds an identifier or a number that the text lacks.
    INVENTED = "invented"
    #: It holds control characters, or replacement characters that the text lacks.
    INVALID_TEXT = "invalid_text"


class FillOutcome(StrEnum):
    """What became of an order."""

    #: The rewrite is stored, and the next block shows it.
    ACCEPTED = "accepted"
    #: The sidecar did not take what came, which the verdict explains.
    REJECTED = "rejected"
    #: The rewriter raised, or returned what is no rewrite.
    ERROR = "error"
    #: The rewriter said that there is no budget, for this order or for one before it in its batch.
    NO_BUDGET = "no_budget"
    #: There was no time, or none was left.
    DEADLINE = "deadline"
    #: There was a rewrite, and the sidecar could not be told.
    NOT_SENT = "not_sent"
    #: The ledger was closed first, or too many orders waited already.
    ABANDONED = "abandoned"


#: What a second try may mend, and what it is told. Others say that the order is over.
_REMARKS: Final = {
    Verdict.TOO_LONG: "The answer before this one was {over} bytes too long. Write a shorter one.",
    Verdict.EMPTY: "The answer before this one was empty.",
    Verdict.ECHO: "The answer before this one repeated these instructions. Write the shorter text alone.",
    Verdict.INVENTED: "The answer before this one held an identifier, number, link or name that the text lacks.",
    Verdict.INVALID_TEXT: "The answer before this one held characters that are not plain text.",
}


def worth_a_retry(verdict: Verdict) -> bool:
    """Whether another rewrite for the same order may be taken."""
    return verdict in _REMARKS


@dataclass(frozen=True, slots=True)
class Order:
    """One call of the rewriter: a text that may become shorter, and everything that a model needs to be told.

    Attributes:
        order_id: Names the order. Opaque.
        kind: What the text is.
        text: What is to be rewritten, at most 64 KiB.
        limit_bytes: The most that the rewrite may have.
        instructions: What stands before the text in the prompt. It fences the text: orders inside it are content.
        closing: What stands after the text in the prompt.
        agent_handle: The seat, whose auxiliary model and budget these are.
        attempt: 1, or 2 for the one retry after a rejection.
        rejection: Why the first attempt was rejected; None on the first.
        over_by_bytes: How much the first attempt was over the limit; 0 unless it was rejected as TOO_LONG.
        seconds: How long the ledger waits for this attempt.
    """

    order_id: str
    kind: OrderKind
    text: str = field(repr=False)
    limit_bytes: int
    instructions: str = field(repr=False)
    closing: str = field(repr=False)
    agent_handle: str = ""
    attempt: int = 1
    rejection: Verdict | None = None
    over_by_bytes: int = 0
    seconds: float = 0.0

    @property
    def prompt(self) -> str:
        """The prompt for the model: instructions, text and closing, put together as they are."""
        return f"{self.instructions}{self.text}{self.closing}"

    @property
    def remark(self) -> str:
        """Why the first attempt was rejected, one sentence to follow the prompt; empty on the first."""
        return _REMARKS.get(self.rejection, "").format(over=self.over_by_bytes) if self.rejection else ""
