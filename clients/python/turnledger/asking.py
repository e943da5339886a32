"""How the core asks: once, or again as a rule allows, within one deadline. Pure; time and chance are passed in."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from turnledger.deadlines import Deadlines, Patience
from turnledger.failure import CLOSED, DEADLINE_EXCEEDED, TOO_LARGE, UNREACHABLE, Failure
from turnledger.retry import Rule, wait_seconds
from turnledger.stats import Counters
from turnledger.steps import AnswerT, Request, Sleep, Steps, call

#: With less left than this no further try is made: it could only end in the deadline.
_SHORTEST_TRY_SECONDS = 0.01

#: A further try that had less than this and ran out of time says nothing new: the failure before it stands.
_TELLING_TRY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Asker:
    """The means of asking. `clock` is monotonic seconds, `now` the UTC time, `random` 0 up to 1."""

    deadlines: Deadlines
    patience: Patience
    counters: Counters
    clock: Callable[[], float]
    now: Callable[[], datetime]
    random: Callable[[], float]

    def once(self, request: Request, answer: type[AnswerT], seconds: float) -> Steps[AnswerT | Failure]:
        """One try. What came of it tells how patient the next rounds may be."""
        came = yield from call(request, seconds, answer)
        if not isinstance(came, Failure):
            self.patience.answered()
        elif came.reason in (UNREACHABLE, DEADLINE_EXCEEDED):
            self.patience.unanswered(self.clock())
        elif came.reason not in (TOO_LARGE, CLOSED):
            self.patience.answered()
        return came

    def persist(
        self, request: Request, answer: type[AnswerT], seconds: float, rule: Rule
    ) -> Steps[tuple[AnswerT | Failure, int]]:
        """As many tries as `rule` allows within `seconds` altogether; what came of them, and how many there were."""
        until = self.clock() + seconds
        attempts = 0
        before: Failure | None = None
        while True:
            attempts += 1
            left = max(until - self.clock(), 0.0)
            came = yield from self.once(request, answer, left)
            if not isinstance(came, Failure) or not rule(came):
                return came, attempts
            if before and came.reason == DEADLINE_EXCEEDED and left < _TELLING_TRY_SECONDS:
                came = before
            before = came
            wait = wait_seconds(came, attempts, self.random)
            if self.clock() + wait > until - _SHORTEST_TRY_SECONDS:
                return came, attempts
            yield Sleep(wait)
            self.counters.add(retries=1)
