"""When a call is made again, and after how long: the table of the contract's errors as one rule."""

import math
from collections.abc import Callable
from typing import Final

from turnledger.failure import UNREACHABLE, Failure

#: The first wait where the sidecar names none, doubled each time: a sidecar restarts in well under a second.
FIRST_WAIT_SECONDS: Final = 0.05
#: The longest such wait, so that a sidecar that comes back is found within a second.
LONGEST_WAIT_SECONDS: Final = 1.0

#: Decides whether a call that failed may be made again.
Rule = Callable[[Failure], bool]


def never(_failure: Failure) -> bool:
    """For what is over with the first failure."""
    return False


def as_the_contract_allows(failure: Failure) -> bool:
    """For writes: unavailable, shed, or out of time. All are idempotent, so a lost answer is safe to ask for again.

    A full disk, a message over the limit, a refused field, a damaged store and a bug stay as they are: never again.
    """
    return failure.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED") or failure.reason == "OVERLOADED"


def while_it_answers(failure: Failure) -> bool:
    """For the read at turn start: as for writes, but somebody waits, so an address where nobody is fails at once."""
    return as_the_contract_allows(failure) and failure.reason != UNREACHABLE


def wait_seconds(failure: Failure, attempt: int, random: Callable[[], float]) -> float:
    """How long to wait after the `attempt`-th failure (from 1), jittered by `random` (0 up to 1).

    The sidecar's own time is a floor, up to half as much again is added; else half to all of a doubling wait is taken.
    Jitter keeps engines that were shed together from coming back together.
    """
    if failure.retry_after is not None and failure.retry_after > 0:
        return failure.retry_after * (1 + random() / 2)
    doubled = FIRST_WAIT_SECONDS * math.pow(2, min(attempt - 1, 16))
    return min(doubled, LONGEST_WAIT_SECONDS) * (0.5 + random() / 2)
