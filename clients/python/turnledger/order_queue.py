"""The orders that wait and run: each at most once at a time, a few at once. For many tasks or threads together."""

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from concurrent.futures import Future
from contextvars import Context
from dataclasses import dataclass, field
from typing import Final

from turnledger.events import OrderFilled
from turnledger.order import Order
from turnledger.steps import TurnKeys

#: Orders that may wait: 64 MiB of text at most. A crowd of this size is minutes of work for a few calls at a time, and
#: most would be past their deadline by then.
WAITING_ORDERS: Final = 1_000

#: Orders remembered as failed, so that not every later turn pays for the same failure again: hundreds of bytes each.
_RESTING_ORDERS: Final = 10_000


class Batch:
    """The orders of one answer. It ends with the first of them that finds no budget."""

    def __init__(self) -> None:
        self.has_budget = True


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """An order on its way. `until` is monotonic seconds, `context` that of its turn; `done` gives what became of it."""

    keys: TurnKeys
    order: Order
    until: float
    batch: Batch
    context: Context
    done: "Future[OrderFilled]" = field(default_factory=Future)

    @property
    def name(self) -> tuple[str, str, str]:
        """What makes it this order and no other."""
        return (self.keys.agent_handle, self.keys.conversation_key, self.order.order_id)


class OrderQueue:
    """First come, first served, but for orders that a turn waits for; `limit` workers at most take from it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._open: dict[tuple[str, str, str], Job] = {}
        self._resting: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._workers = 0
        self._closed = False

    def add(self, jobs: Iterable[Job], now: float, *, urgent: bool) -> tuple[list[Job], list[Job], int]:
        """Those to wait for (an equal one stands for each that is open already), those without room, workers wanted.

        A closed queue takes none, and an order that failed is not taken before its rest is over (`now` is monotonic).
        """
        with self._lock:
            if self._closed:
                return [], [], 0
            followed: list[Job] = []
            fresh: list[Job] = []
            crowded: list[Job] = []
            for job in jobs:
                if (known := self._open.get(job.name)) is not None:
                    followed.append(known)
                elif len(self._waiting) + len(fresh) >= WAITING_ORDERS:
                    crowded.append(job)
                elif self._resting.get(job.name, now) <= now:
                    self._open[job.name] = job
                    fresh.append(job)
            if urgent:
                self._waiting.extendleft(reversed(fresh))
            else:
                self._waiting.extend(fresh)
            wanted = min(self._limit - self._workers, len(fresh))
            self._workers += wanted
            return followed + fresh, crowded, wanted

    def take(self) -> Job | None:
        """The next order for a worker; None, and one worker less, if there is none."""
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._workers -= 1
            return None

    def leave(self) -> list[Job]:
        """One worker less, which did not come to the end. Gives the orders that nobody is left to take."""
        with self._lock:
            self._workers -= 1
            return self._strand() if self._workers == 0 else []

    def end(self, job: Job, filled: OrderFilled, rests_until: float | None = None) -> None:
        """The order is over: whoever waits for it goes on. It rests until then (monotonic seconds), if it failed."""
        with self._lock:
            self._open.pop(job.name, None)
            if rests_until is not None:
                self._resting[job.name] = rests_until
                if len(self._resting) > _RESTING_ORDERS:
                    self._resting.popitem(last=False)
        job.done.set_result(filled)

    def close(self) -> None:
        """Take no more. What waits may still be run."""
        with self._lock:
            self._closed = True

    def strand(self) -> list[Job]:
        """Take what waits out of the queue."""
        with self._lock:
            return self._strand()

    def _strand(self) -> list[Job]:
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting
