"""Background work on an event loop: the workers that fill orders, and the calls of a rewriter, async or not.

A plain rewriter runs in daemon threads (see `thread_crew`). A call that was given up keeps its place until it ends:
never are more than `at_once` under way.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine
from typing import Any, cast

from turnledger.failure import CLOSED, Failure
from turnledger.order import FillOutcome, Order
from turnledger.rewriter import AsyncRewriter, PlainRewriter, Rewriter, Rewritten, Unfilled, is_async, refused, taken
from turnledger.steps import Consult
from turnledger.thread_crew import NOTICE_SECONDS, call_in_thread


class AioCrew:
    """Workers and calls of one `Ledger`."""

    def __init__(self, rewriter: Rewriter, at_once: int) -> None:
        self._rewriter = rewriter
        self._is_async = is_async(rewriter)
        self._places = asyncio.Semaphore(at_once)
        self._workers: set[asyncio.Task[None]] = set()
        self._calls: set[asyncio.Task[Rewritten]] = set()
        self._given_up = False

    def start(self, work: Coroutine[Any, Any, None]) -> Failure | None:
        """Do the work in a task; a failure where nobody does it."""
        if self._given_up:
            work.close()
            return Failure("CANCELLED", CLOSED)
        task = asyncio.create_task(work)
        self._workers.add(task)
        task.add_done_callback(self._workers.discard)
        return None

    async def consult(self, this: Consult) -> Rewritten:
        """Call the rewriter within the time given, waiting for a place included. Cancelled, it cancels its call."""
        loop = asyncio.get_running_loop()
        until = loop.time() + this.timeout
        try:
            async with asyncio.timeout(this.timeout):
                await self._places.acquire()
        except TimeoutError:
            return Unfilled(FillOutcome.DEADLINE, called=False)
        call = self._call(this)
        call.add_done_callback(lambda _: self._places.release())
        try:
            await asyncio.wait({call}, timeout=max(until - loop.time(), 0.0))
        finally:
            if isinstance(call, asyncio.Task):
                call.cancel()
        return call.result() if call.done() and not call.cancelled() else Unfilled(FillOutcome.DEADLINE)

    async def finish(self, seconds: float) -> bool:
        """Wait until all work is done, no longer than that; whether it is."""
        if self._workers:
            await asyncio.wait(set(self._workers), timeout=seconds)
        return not self._workers

    async def give_up(self) -> None:
        """Cancel all work and every call, start nothing more, and give them a moment to notice."""
        self._given_up = True
        left: set[asyncio.Task[Any]] = {*self._workers, *self._calls}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=NOTICE_SECONDS)

    def _call(self, this: Consult) -> "asyncio.Future[Rewritten]":
        """The call under way: a task, or a thread's answer, which cannot be cancelled and is not waited for."""
        if self._is_async:
            rewriter = cast(AsyncRewriter, self._rewriter)
            return self._task(_awaited(rewriter, this.order), this)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Rewritten] = loop.create_future()

        def settle(came: object) -> None:
            if not isinstance(came, Awaitable):
                answer.set_result(came if isinstance(came, Unfilled) else taken(came))
                return
            # A plain function that returns an awaitable, as a decorated async one does.
            self._task(_awaited(lambda _: came, this.order), this).add_done_callback(
                lambda task: answer.set_result(Unfilled(FillOutcome.ABANDONED) if task.cancelled() else task.result())
            )

        def done(came: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(settle, came)

        try:
            call_in_thread(cast(PlainRewriter, self._rewriter), this.order, this.context.copy(), done)
        except RuntimeError as error:  # no thread is left
            answer.set_result(refused(error))
        return answer

    def _task(self, coroutine: Coroutine[Any, Any, Rewritten], this: Consult) -> "asyncio.Task[Rewritten]":
        task = asyncio.get_running_loop().create_task(coroutine, context=this.context.copy())
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return task


async def _awaited(rewriter: AsyncRewriter, order: Order) -> Rewritten:
    """What an async rewriter comes to, whatever it raises but its own cancellation and a person's Ctrl-C."""
    try:
        return taken(await rewriter(order))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling() > 0:
            raise
        return refused(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a rewriter raises, it must not reach a turn
        return refused(error)
