"""How orders are filled: a few at a time, within one deadline, a rejected one once more, and never at a turn's cost."""

import math
from collections.abc import Iterable
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Final

from turnledger import retry
from turnledger.asking import Asker
from turnledger.events import OrderFilled
from turnledger.failure import Failure
from turnledger.order import FillOutcome, Order, OrderKind, Verdict, worth_a_retry
from turnledger.order_queue import Batch, Job, OrderQueue
from turnledger.reporter import Reporter
from turnledger.rewriter import Rewrite, Unfilled
from turnledger.steps import AskFit, Consult, FitAnswer, Start, Steps, TurnKeys, consult
from turnledger.text import repaired

#: Calls of the rewriter at once: a turn's handful of orders is done in two or three rounds, and a provider's limit on a
#: seat's small model is not met by its bookkeeping.
REWRITES_AT_ONCE: Final = 3

#: A rewrite that came in time is paid for: handing it in gets at least this long, in seconds.
_FIT_SECONDS: Final = 1.0

#: With less left than this, in seconds, no model answers.
_SHORTEST_CALL_SECONDS: Final = 0.05


#: An order whose call failed is let be for so long, in seconds: History names a missing note at each turn, and a model
#: that fails on it again and again would be paid, and waited for, each time.
_REST_SECONDS: Final = 600.0


@dataclass(slots=True)
class _Progress:
    """What became of an order so far, and what it took. It was abandoned unless something else is said."""

    outcome: FillOutcome = FillOutcome.ABANDONED
    verdict: Verdict | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""
    failure: Failure | None = None
    #: Rejected twice.
    hopeless: bool = False


class Filler:
    """Fills the orders of one ledger through its shell's rewriter, `at_once` at a time."""

    def __init__(self, asker: Asker, reporter: Reporter, at_once: int) -> None:
        if at_once < 1:
            raise ValueError(f"rewrites_at_once must be 1 or more, not {at_once}")
        self._asker = asker
        self._reporter = reporter
        self._queue = OrderQueue(at_once)

    def start(self, keys: TurnKeys, orders: Iterable[Order], *, urgent: bool = False) -> Steps[tuple[Job, ...]]:
        """Have the orders filled in the background; the jobs to wait for. `urgent`: before others, a turn waits."""
        batch, until, context = Batch(), self._asker.clock() + self._asker.deadlines.rewrite, copy_context()
        jobs = (
            Job(keys, replace(order, agent_handle=keys.agent_handle), until, batch, context.copy()) for order in orders
        )
        followed, crowded, wanted = self._queue.add(jobs, self._asker.clock(), urgent=urgent)
        self._abandon(crowded)
        for _ in range(wanted):
            if (yield Start(self._work())) is not None:
                self._abandon(self._queue.leave())
        return tuple(followed)

    def close(self) -> None:
        """Take no further orders. Those that are here may still be run, until `abandon`."""
        self._queue.close()

    def abandon(self) -> None:
        """Give up what waits."""
        self._abandon(self._queue.strand())

    def _work(self) -> Steps[None]:
        """One worker: order after order until none waits."""
        ended = False
        try:
            while (job := self._queue.take()) is not None:
                yield from self._fill(job)
            ended = True
        finally:
            if not ended:
                self._abandon(self._queue.leave())

    def _fill(self, job: Job) -> Steps[None]:
        began = self._asker.clock()
        progress = _Progress()
        try:
            yield from self._tries(job, progress)
        finally:
            self._end(job, progress, self._asker.clock() - began)

    def _tries(self, job: Job, progress: _Progress) -> Steps[None]:
        """The first try and, after a rejection that it may mend, the one retry."""
        rejected = yield from self._try(job, job.order, progress)
        if rejected is not None and job.batch.has_budget and self._left(job) > _SHORTEST_CALL_SECONDS:
            retried = replace(job.order, attempt=2, rejection=rejected.verdict, over_by_bytes=rejected.over_by_bytes)
            progress.hopeless = (yield from self._try(job, retried, progress)) is not None

    def _try(self, job: Job, order: Order, progress: _Progress) -> Steps[FitAnswer | None]:
        """One call of the rewriter, handed in. What the sidecar said, if that is worth a retry."""
        came = yield from self._rewrite(job, order, progress)
        if came is None:
            return None
        original = "" if order.kind is OrderKind.NOTE else order.text  # a note's is the entry, which the sidecar has
        request = AskFit(job.keys, order.order_id, original, repaired(came.text)[0], job.context)
        seconds = max(self._left(job), _FIT_SECONDS)
        answer, _ = yield from self._asker.persist(request, FitAnswer, seconds, retry.as_the_contract_allows)
        if isinstance(answer, Failure):
            progress.outcome, progress.failure = FillOutcome.NOT_SENT, answer
            return None
        progress.verdict = answer.verdict
        accepted = answer.verdict is Verdict.ACCEPTED
        progress.outcome = FillOutcome.ACCEPTED if accepted else FillOutcome.REJECTED
        return answer if worth_a_retry(answer.verdict) else None

    def _rewrite(self, job: Job, order: Order, progress: _Progress) -> Steps[Rewrite | None]:
        """What the rewriter made of the order within what is left of its time, if its batch has budget."""
        left = self._left(job)
        if not job.batch.has_budget or left <= _SHORTEST_CALL_SECONDS:
            progress.outcome = FillOutcome.DEADLINE if job.batch.has_budget else FillOutcome.NO_BUDGET
            return None
        came = yield from consult(Consult(replace(order, seconds=left), left, job.context))
        if isinstance(came, Unfilled):
            progress.calls += came.called
            progress.outcome, progress.error = came.outcome, came.error
            if came.outcome is FillOutcome.NO_BUDGET:
                job.batch.has_budget = False
            return None
        progress.calls += 1
        progress.prompt_tokens += came.prompt_tokens
        progress.completion_tokens += came.completion_tokens
        return came

    def _left(self, job: Job) -> float:
        return job.until - self._asker.clock()

    def _abandon(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self._end(job, _Progress(), 0.0)

    def _end(self, job: Job, progress: _Progress, seconds: float) -> None:
        filled = OrderFilled(
            keys=job.keys,
            order_id=job.order.order_id,
            kind=job.order.kind,
            outcome=progress.outcome,
            verdict=progress.verdict,
            calls=progress.calls,
            prompt_tokens=progress.prompt_tokens,
            completion_tokens=progress.completion_tokens,
            error=progress.error,
            failure=progress.failure,
            seconds=seconds,
        )
        try:
            self._reporter.filled(filled)
        finally:
            self._queue.end(job, filled, self._rests_until(progress))

    def _rests_until(self, progress: _Progress) -> float | None:
        """Until when the order is not run again: for good after two rejections, a while after a failed call."""
        if progress.hopeless:
            return math.inf
        failed = progress.calls > 0 and progress.outcome in (FillOutcome.ERROR, FillOutcome.DEADLINE)
        return self._asker.clock() + _REST_SECONDS if failed else None
