"""Why a call did not answer: one value, whatever went wrong between the engine and the sidecar."""

from dataclasses import dataclass, field
from typing import Final

#: Reasons that this library finds by itself. All others are the sidecar's own (docs/errors.md has them), or,
#: where whoever answered gave none, the name of the gRPC status.
UNREACHABLE: Final = "UNREACHABLE"  # nobody answered at the address, or the connection broke
DEADLINE_EXCEEDED: Final = "DEADLINE_EXCEEDED"  # no answer in time; what was asked may have happened all the same
TOO_LARGE: Final = "TOO_LARGE"  # over the message limit; the sidecar gives the same reason
BAD_ANSWER: Final = "BAD_ANSWER"  # an answer that the contract does not allow
CLOSED: Final = "CLOSED"  # the ledger was closed before the call was over


@dataclass(frozen=True, slots=True)
class Violation:
    """One field of a request that was refused, and the rule that it broke."""

    field: str
    description: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer.

    `code` is a gRPC status name and `reason` the machine-readable cause, to branch on. `message` is for a person, and
    repr leaves it out since a foreign server may have written anything into it. `retry_after` is in seconds, if the
    sidecar named a time.
    """

    code: str
    reason: str
    message: str = field(default="", repr=False)
    retry_after: float | None = None
    violations: tuple[Violation, ...] = ()

    def __str__(self) -> str:
        """Fit for a log: code, reason and the refused fields, with the message only where the transport wrote it."""
        named = self.code if self.code == self.reason else f"{self.code} {self.reason}"
        fields = f" ({', '.join(violation.field for violation in self.violations)})" if self.violations else ""
        return f"{named}{fields}: {self.message}" if self.reason == UNREACHABLE and self.message else named + fields


#: Whoever asked did not wait for the answer.
CANCELLED: Final = Failure("CANCELLED", "CANCELLED")


class LedgerError(Exception):
    """A call whose failure the caller must see: nothing was forgotten, as far as anybody knows. Holds the `failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure
