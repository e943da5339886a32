"""Health: what is really well, asked for often and checked seldom."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.config.live import ReloadState
from sidecar.domain.errors import Code, LedgerError
from sidecar.store.store import Store

_log: Final = logging.getLogger("turnledger.health")

#: Seconds that an answer is good for: many probes cost one check.
_FRESH_S: Final = 1.0

#: Seconds that a check may take. A hung mount makes its component unwell, and no probe hang.
_PATIENCE_S: Final = 2.0

#: With less than this free, in bytes, the disk is not well: the reserve is the next thing to go.
LOW_DISK_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class State:
    """Whether a component is well, and if not, why, in words that say what to do. Never a word of an entry."""

    well: bool
    detail: str = ""


#: Raises `LedgerError` for what is not well.
Check = Callable[[], Awaitable[None]]


class Health:
    """The named components. The process itself is none: whoever gets an answer knows that it lives."""

    def __init__(
        self,
        checks: Mapping[str, Check],
        clock: Callable[[], float],
        observe: Callable[[str, bool], None] = lambda _name, _well: None,
    ) -> None:
        """`clock` is monotonic seconds. `observe` hears of each check's outcome."""
        self._checks = checks
        self._clock = clock
        self._observe = observe
        self._known: dict[str, tuple[float, State]] = {}
        self._looking: dict[str, asyncio.Task[State]] = {}

    @property
    def components(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self._checks)

    async def state(self, name: str) -> State:
        """How the component is, as of a second ago at most. Raises `KeyError` for one that there is not."""
        at, known = self._known.get(name, (float("-inf"), State(well=False)))
        if self._clock() - at < _FRESH_S:
            return known
        looking = self._looking.get(name) or self._begin(name)
        done, _ = await asyncio.wait({looking}, timeout=_PATIENCE_S)
        if not done:
            return self._found(name, State(well=False, detail=f"it did not answer within {_PATIENCE_S:.0f} s"))
        return looking.result()

    async def states(self) -> dict[str, State]:
        """All of them."""
        return dict(zip(self._checks, await asyncio.gather(*map(self.state, self._checks)), strict=True))

    async def close(self) -> None:
        """Let go of checks that hang."""
        for task in self._looking.values():
            task.cancel()
        await asyncio.gather(*self._looking.values(), return_exceptions=True)

    def _begin(self, name: str) -> asyncio.Task[State]:
        """Once it ends it is nobody's answer any more but theirs who wait, however late that is."""
        looking = self._looking[name] = asyncio.create_task(self._look(name, self._checks[name]))
        looking.add_done_callback(lambda _: self._looking.pop(name))
        return looking

    async def _look(self, name: str, check: Check) -> State:
        try:
            await check()
        except LedgerError as error:
            return self._found(name, State(well=False, detail=f"{error.code}: {error.message}"))
        return self._found(name, State(well=True))

    def _found(self, name: str, state: State) -> State:
        _, before = self._known.get(name, (0.0, State(well=True)))
        if state.well != before.well:
            if state.well:
                _log.info("%s is well again", name)
            else:
                _log.error("%s is not well: %s", name, state.detail)
        self._known[name] = (self._clock(), state)
        self._observe(name, state.well)
        return state


def checks_of(
    store: Store, settings: Callable[[], ReloadState], trouble: Callable[[], LedgerError | None]
) -> dict[str, Check]:
    """What there is to check. `trouble` is what of the configuration could not be done when the process started."""

    async def disk() -> None:
        free = (await store.sizes()).disk_free_bytes
        if free < LOW_DISK_BYTES:
            raise LedgerError(
                Code.STORE_FULL, f"{free} bytes are free on the store's disk; free space or enlarge the volume"
            )

    async def configuration() -> None:
        if (found := trouble()) is not None:
            raise found
        if not settings().ok:
            raise LedgerError(Code.CONFIG_INVALID, settings().message)

    return {
        "store.readable": store.try_read,
        "store.writable": store.try_write,
        "disk": disk,
        "configuration": configuration,
    }
