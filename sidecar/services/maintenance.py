"""Maintenance: the sweep, at its times and when a person asks for it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from sidecar.config.settings import ConversationSession
from sidecar.domain.errors import LedgerError
from sidecar.domain.retention import Horizon, Look, TrimBound, look
from sidecar.store.store import Store
from sidecar.store.sweep import Swept

_log: Final = logging.getLogger("turnledger.maintenance")

#: Seconds since 1970, UTC; and seconds that only ever go forward.
Clock = Callable[[], int]
Uptime = Callable[[], float]


class Maintenance:
    """Sweeps the store. One sweep at a time, whoever asks."""

    def __init__(
        self,
        store: Store,
        settings: Callable[[], ConversationSession],
        bound: TrimBound,
        *,
        interval_s: int,
        clock: Clock,
        uptime: Uptime,
        observe: Callable[[Swept], None] = lambda _: None,
    ) -> None:
        """`retention_days` is taken as it stands now; `max_entries` is asked for at each sweep.

        `observe` hears of each sweep that came to its end. `interval_s` is seconds of uptime between two of them.
        """
        self._store = store
        self._settings = settings
        self._bound = bound
        self._interval_s = interval_s
        self._retention_days = settings().retention_days
        self._clock = clock
        self._uptime = uptime
        self._observe = observe
        self._horizon = Horizon(interval_s)
        self._trimmed_to: int | None = None
        self._sweeping = asyncio.Lock()

    async def run(self) -> None:
        """Look at once, and sweep after each interval, until cancelled. A sweep that fails is tried again next time."""
        self._agreed()
        said = ""
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self.sweep()
                said = ""
            except LedgerError as error:
                if error.message != said:
                    _log.error("the sweep failed, and is tried again each %d s: %s", self._interval_s, error.message)
                    said = error.message

    async def sweep(self, *, trust_clock: bool = False) -> Swept:
        """Sweep now. With `trust_clock` by this look at the clock alone, without one an interval before that agrees.

        Raises `LedgerError`, having done what it did until then.
        """
        async with self._sweeping:
            horizon = self._agreed()
            if trust_clock:
                horizon = self._look().horizon
            max_entries = self._bound.for_a_sweep(self._settings().max_entries)
            lowered = self._trimmed_to is None or max_entries < self._trimmed_to
            swept = await self._store.sweep(horizon, max_entries if lowered else None)
            self._trimmed_to = max_entries
        _log.info(
            "swept: %d rows past retention, %d entries beyond max_entries, %d forgotten turns' digests, %d bytes back",
            swept.swept,
            swept.trimmed,
            swept.expired,
            swept.given_back,
        )
        self._observe(swept)
        return swept

    def _agreed(self) -> int | None:
        return self._horizon.agreed(self._look())

    def _look(self) -> Look:
        return look(self._clock(), self._uptime(), self._retention_days, self._interval_s)
