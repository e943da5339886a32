"""How long an engine waits for its sidecar. All times are seconds."""

import math
from dataclasses import dataclass, fields
from typing import Final

#: While the sidecar is known not to answer, a round waits this long at most. A sidecar that is well answers a message
#: in a few milliseconds, and 30 rounds against a hung one then cost two seconds, not fifteen.
STRAINED_MESSAGE_SECONDS: Final = 0.05

#: ... but once in this time a round waits in full again, so that a sidecar that is merely slow is found to be back.
FULL_WAIT_EVERY_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The most that each call may take, retries and the waits between them included.

    Raises ValueError unless every one is a finite number above 0.
    """

    #: A person waits for the turn to start, and a turn without its history may repeat itself: worth a moment, not more.
    begin: float = 2.0
    #: Every round pays it, and a message composed here has the same bytes: only the sidecar's own event is lost.
    user_message: float = 0.5
    #: The turn is over and nobody waits, while its entry has no other copy: long enough for a sidecar to restart.
    complete: float = 10.0
    #: Says only that a run was suspended or crashed; nothing is recorded either way.
    run_end: float = 0.5
    #: As `complete`: nobody waits, and the entry would go on telling the next turn that nobody received its text.
    settle: float = 10.0
    #: Erasing may wait for the writer and for a checkpoint.
    forget: float = 10.0

    #: Nobody waits for an order, and the conversation's next turn is rarely nearer: three rounds of a slow model for a
    #: turn's handful of orders. Time in the queue counts, so that what waits never grows old.
    rewrite: float = 30.0
    #: What `close` gives the orders that are left: one ordinary call of a model, and a node that shuts down has more to
    #: do in its half minute.
    close: float = 3.0

    def __post_init__(self) -> None:
        for deadline in fields(self):
            seconds = getattr(self, deadline.name)
            if not (math.isfinite(seconds) and seconds > 0):
                raise ValueError(f"deadline {deadline.name} must be a finite number of seconds above 0, not {seconds}")


DEFAULT_DEADLINES: Final = Deadlines()


class Patience:
    """How long a round waits for its message: in full while the sidecar answers, briefly while it is known not to.

    All turns of a ledger share one, so that what one turn learned spares the others. Times are monotonic seconds.
    """

    def __init__(self, full: float) -> None:
        self._full = full
        self._full_wait_from: float | None = None

    def answered(self) -> None:
        """The sidecar answered something, if only an error."""
        self._full_wait_from = None

    def unanswered(self, now: float) -> None:
        """The sidecar did not answer at all, or not in time."""
        if self._full_wait_from is None:
            self._full_wait_from = now + FULL_WAIT_EVERY_SECONDS

    def seconds(self, now: float) -> float:
        """How long the message that is asked for now may take."""
        due = self._full_wait_from
        if due is None:
            return self._full
        if now >= due:
            self._full_wait_from = now + FULL_WAIT_EVERY_SECONDS
            return self._full
        return min(self._full, STRAINED_MESSAGE_SECONDS)
