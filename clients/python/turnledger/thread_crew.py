"""Background work in threads: the workers that fill orders, and the calls of a plain rewriter.

All are daemon threads, since a call of a plain function cannot be cancelled, and one that hangs must not hold the
process. A call that was given up keeps its place until it returns: never are more than `at_once` under way.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context
from typing import Final

from turnledger.failure import CLOSED, Failure
from turnledger.order import FillOutcome, Order
from turnledger.rewriter import PlainRewriter, Rewritten, Unfilled, refused, taken
from turnledger.steps import Consult

#: What is given up gets this long to notice, in seconds.
NOTICE_SECONDS: Final = 0.5


def call_in_thread(
    rewriter: Callable[[Order], object], order: Order, context: Context, done: Callable[..., None]
) -> None:
    """Call the rewriter in a thread of its own, and then `done` with what it returned, or with `Unfilled`.

    Raises RuntimeError where the system has no thread left.
    """

    def run() -> None:
        try:
            came = context.run(rewriter, order)
        except BaseException as error:  # noqa: BLE001 - whatever a rewriter raises, it must not reach a turn
            came = refused(error)
        done(came)

    threading.Thread(target=run, name="turnledger-rewriter", daemon=True).start()


class ThreadCrew:
    """Workers and calls of one `BlockingLedger`."""

    def __init__(self, rewriter: PlainRewriter, at_once: int) -> None:
        self._rewriter = rewriter
        self._at_once = at_once
        self._news = threading.Condition()
        self._calls: set[Future[Rewritten]] = set()
        self._running = 0
        self._workers: set[threading.Thread] = set()
        self._given_up = False

    def start(self, work: Callable[[], None]) -> Failure | None:
        """Do the work in a thread; a failure where nobody does it."""

        def run() -> None:
            try:
                work()
            finally:
                with self._news:
                    self._workers.discard(threading.current_thread())
                    self._news.notify_all()

        thread = threading.Thread(target=run, name="turnledger-orders", daemon=True)
        with self._news:
            if self._given_up:
                return Failure("CANCELLED", CLOSED)
            self._workers.add(thread)
            try:
                thread.start()
            except RuntimeError:  # no thread is left, or the interpreter ends
                self._workers.discard(thread)
                return Failure("RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED", "no thread could be started")
        return None

    def consult(self, this: Consult) -> Rewritten:
        """Call the rewriter within the time given, waiting for a place included."""
        until = time.monotonic() + this.timeout
        with self._news:
            free = self._news.wait_for(lambda: self._given_up or self._running < self._at_once, this.timeout)
            if self._given_up or not free:
                return Unfilled(FillOutcome.ABANDONED if self._given_up else FillOutcome.DEADLINE, called=False)
            self._running += 1
            answer: Future[Rewritten] = Future()
            self._calls.add(answer)
        try:
            call_in_thread(self._rewriter, this.order, this.context.copy(), lambda came: self._over(answer, came))
        except RuntimeError as error:
            self._over(answer, refused(error))
        try:
            return answer.result(max(until - time.monotonic(), 0.0))
        except TimeoutError:
            return Unfilled(FillOutcome.DEADLINE)

    def finish(self, seconds: float) -> bool:
        """Wait until all work is done, no longer than that; whether it is."""
        with self._news:
            return self._news.wait_for(lambda: not self._workers, seconds)

    def give_up(self) -> None:
        """Wake every worker from its call, and start nothing more."""
        with self._news:
            self._given_up = True
            for answer in self._calls:
                _settle(answer, Unfilled(FillOutcome.ABANDONED))
            self._news.notify_all()

    def _over(self, answer: "Future[Rewritten]", came: object) -> None:
        with self._news:
            self._running -= 1
            self._calls.discard(answer)
            _settle(answer, came if isinstance(came, Unfilled) else taken(came))
            self._news.notify_all()


def _settle(answer: "Future[Rewritten]", came: Rewritten) -> None:
    if not answer.done():
        answer.set_result(came)
