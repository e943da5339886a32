"""The partitions: each has a worker while there is something to do, and waits for a moment of quiet before a turn.

Take from it: people write in bursts, and one turn that answers three messages is better than three turns. While a turn
runs, what comes in waits for the next batch.
"""

import asyncio
from collections.abc import Awaitable, Callable

from examples.engine.batch import Batch
from examples.engine.conversations import Conversations
from examples.engine.inbox import Inbox


class Partitions:
    """Workers of one task group. An error that nobody foresaw ends the engine: its supervisor starts it anew, and the
    inbox redelivers."""

    def __init__(
        self,
        group: asyncio.TaskGroup,
        inbox: Inbox,
        conversations: Conversations,
        run: Callable[[Batch], Awaitable[None]],
        quiet_seconds: float,
    ) -> None:
        self._group = group
        self._inbox = inbox
        self._conversations = conversations
        self._run = run
        self._quiet_seconds = quiet_seconds
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._arrivals: dict[str, asyncio.Event] = {}

    def wake(self, partition: str) -> None:
        """Something came, or a person decided."""
        if partition in self._workers:
            self._arrivals[partition].set()
            return
        self._arrivals[partition] = asyncio.Event()
        self._workers[partition] = self._group.create_task(self._work(partition))

    def stop(self) -> None:
        """Cancel the workers. Their batches stay as they are, and are redelivered."""
        for worker in self._workers.values():
            worker.cancel()

    async def _work(self, partition: str) -> None:
        """Run the partition's batches one after another, until none is left or one waits for a person."""
        while (batch := await self._next(partition)) is not None:
            async with self._conversations.alone(batch.conversation):
                await self._run(batch)
        # Nothing is awaited between the last look into the inbox and here, so nothing that came is overlooked.
        del self._workers[partition], self._arrivals[partition]

    async def _next(self, partition: str) -> Batch | None:
        batch = self._inbox.unfinished(partition)
        if batch is None:
            await self._quiet(self._arrivals[partition])
            return self._inbox.seal(partition)
        return None if batch.waits_for_a_person else batch

    async def _quiet(self, arrival: asyncio.Event) -> None:
        """Return when nothing came for a while."""
        while True:
            arrival.clear()
            try:
                await asyncio.wait_for(arrival.wait(), self._quiet_seconds)
            except TimeoutError:
                return
