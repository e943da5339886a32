"""Rewriters and what is heard of them, for tests of both shells."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from turnledger import Event, Order, OrderFilled

#: Seconds that anything which must happen may take on a busy machine.
PATIENCE_S = 20.0


class Heard:
    """An `on_event` hook that keeps the orders that are over."""

    def __init__(self) -> None:
        self.filled: list[OrderFilled] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, OrderFilled):
            self.filled.append(event)

    @property
    def outcomes(self) -> list[str]:
        """What became of the orders, as they ended."""
        return [str(event.outcome) for event in self.filled]

    async def of(self, count: int) -> list[OrderFilled]:
        """Wait until so many orders are over."""
        await until(lambda: len(self.filled) >= count)
        return self.filled


class Scripted:
    """A plain rewriter whose answers a test scripts, the last one from then on; exceptions are raised.

    `most` is how many calls were under way at once.
    """

    def __init__(self, *answers: Any, seconds: float = 0.0, gate: threading.Event | None = None) -> None:
        self.orders: list[Order] = []
        self.most = 0
        self._answers = list(answers) or ["shorter"]
        self._seconds = seconds
        self._gate = gate
        self._running = 0
        self._lock = threading.Lock()

    def __call__(self, order: Order) -> Any:
        with self._lock:
            self.orders.append(order)
            self._running += 1
            self.most = max(self.most, self._running)
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        try:
            time.sleep(self._seconds)
            if self._gate is not None:
                self._gate.wait(PATIENCE_S)
            if isinstance(answer, BaseException):
                raise answer
            return answer
        finally:
            with self._lock:
                self._running -= 1


async def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds; fails where it does not within `PATIENCE_S`."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)
