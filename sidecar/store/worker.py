"""A thread with a queue: SQLite's work happens there, and never on the event loop.

Jobs that arrive while a batch is under way form the next one. So the thread neither waits for company when idle nor
pays for one commit each when busy, and the event loop is woken once a batch.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeVar

import apsw

from sidecar.domain.errors import Code, LedgerError
from sidecar.domain.timing import TIMING
from sidecar.store.observer import StoreObserver

T = TypeVar("T")

#: What runs on the thread. It may run twice (a shared commit that failed is taken apart), so it changes nothing but the
#: database.
Job = Callable[[apsw.Connection], Any]

#: Jobs in one batch. At 2 KB an entry a commit of this size still takes well under 5 ms.
_BATCH_JOBS: Final = 64


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What a job answered, or what it raised; and how many seconds its commit took, if it had one."""

    value: T | None = None
    error: BaseException | None = None
    committed_s: float = 0.0


#: Runs the jobs of one batch, each with its own outcome.
RunBatch = Callable[[Sequence[Job]], Sequence[Outcome[Any]]]


@dataclass(slots=True)
class _Item:
    """A job on its way: monotonic seconds of its arrival, of its batch's beginning and of that one's end."""

    job: Job
    future: "asyncio.Future[Any]"
    came: float
    began: float = 0.0
    ended: float = 0.0
    committed_s: float = 0.0


class Worker:
    """One thread that runs jobs in the order of their arrival."""

    def __init__(self, name: str, run_batch: RunBatch, observer: StoreObserver, *, room: int) -> None:
        """`name` is what the observer knows the thread by; `room` is how many jobs may wait."""
        self._name = name
        self._run_batch = run_batch
        self._observer = observer
        self._room = room
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._stopping = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._main, name=f"turnledger-{name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return self._queue.qsize()

    async def run(self, job: Callable[[apsw.Connection], T]) -> T:
        """Run the job on the thread. A caller that is cancelled meanwhile does not stop it.

        Raises `LedgerError`: STORE_UNAVAILABLE once the thread was told to end, since it would never get to the job;
        OVERLOADED where no more may wait: callers leave at their deadlines and come again, and what they leave behind
        on a disk that hangs would take all memory.
        """
        if self._stopping:
            raise LedgerError(Code.STORE_UNAVAILABLE, "the store is closing; retry")
        if self._queue.qsize() >= self._room:
            raise LedgerError(Code.OVERLOADED, "the store's disk does not keep up, and no more calls can wait; retry")
        future: asyncio.Future[T] = self._loop.create_future()
        item = _Item(job, future, time.monotonic())
        self._queue.put(item)
        try:
            return await future
        finally:
            timing = TIMING.get()
            if timing is not None and item.ended:
                timing.waited_s += item.began - item.came
                timing.held_s += item.ended - item.began
                timing.committed_s += item.committed_s

    async def stop(self) -> None:
        """Finish what was accepted, then end the thread."""
        self._stopping = True
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _main(self) -> None:
        stopping = False
        while not stopping:
            taken = self._take()
            batch = [item for item in taken if item is not None]
            stopping = len(batch) < len(taken)
            if batch:
                self._do(batch)

    def _do(self, batch: Sequence[_Item]) -> None:
        began = time.monotonic()
        outcomes = self._run_batch([item.job for item in batch])
        ended = time.monotonic()
        for item, outcome in zip(batch, outcomes, strict=True):
            item.began, item.ended, item.committed_s = began, ended, outcome.committed_s
        self._loop.call_soon_threadsafe(_deliver, [item.future for item in batch], outcomes)
        self._observer.batch(self._name, len(batch), began - batch[0].came, ended - began)

    def _take(self) -> list[_Item | None]:
        """Wait for one item, then take what else is there."""
        taken = [self._queue.get()]
        try:
            while taken[-1] is not None and len(taken) < _BATCH_JOBS:
                taken.append(self._queue.get_nowait())
        except Empty:
            pass
        return taken


def attempt(job: Callable[[], T]) -> Outcome[T]:
    """Run the job here and hold what it raises for whoever awaits it, as a future does, bugs included."""
    try:
        return Outcome(value=job())
    except BaseException as error:  # noqa: BLE001  handed on whole: a dead thread would hang every caller
        return Outcome(error=error)


def _deliver(futures: Sequence["asyncio.Future[Any]"], outcomes: Sequence[Outcome[Any]]) -> None:
    for future, outcome in zip(futures, outcomes, strict=True):
        if future.done():
            continue
        if outcome.error is not None:
            future.set_exception(outcome.error)
        else:
            future.set_result(outcome.value)
