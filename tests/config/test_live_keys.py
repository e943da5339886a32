"""The live keys, from the file's bytes to what a turn is answered: real file, real store, real services."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from sidecar.config.effective import effective
from sidecar.config.reloader import Reloader
from sidecar.domain.block import HistoryState
from sidecar.domain.eligibility import Disposition, RunEnd, SkipReason
from sidecar.domain.retention import TrimBound
from sidecar.services.record import CompletedTurn, Record, RecordedTurn
from sidecar.services.render import Render, TurnStart
from tests.support.config_map import ConfigMap
from tests.support.patience import eventually
from tests.support.stores import entry, key, open_store


class _Node:
    """A reloader, a store, and both services on them, wired as the process wires them."""

    def __init__(self, record: Record, render: Render) -> None:
        self._record = record
        self._render = render
        self._numbers = itertools.count(1)

    async def append(self) -> RecordedTurn:
        number = next(self._numbers)
        turn = CompletedTurn(entry(f"reply {number}"), ())
        return await self._record.append(key(f"w{number}"), RunEnd.COMPLETED, turn)

    async def history(self) -> TurnStart:
        return await self._render.history(key(""), None)


@asynccontextmanager
async def _node(settings: Path, store: Path) -> AsyncIterator[_Node]:
    reloader = Reloader(effective(settings, {}, {}))
    running = asyncio.create_task(reloader.run())
    ids = itertools.count(1)
    async with open_store(store) as opened:
        record = Record(opened, reloader.session, lambda: f"e{next(ids)}", TrimBound(reloader.session().max_entries))
        yield _Node(record, Render(opened, reloader.session, lambda *_: None))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _text(*, enabled: bool, max_entries: int = 20) -> str:
    return f"turn_engine: {{conversation_session: {{enabled: {str(enabled).lower()}, max_entries: {max_entries}}}}}"


def _shows(node: _Node, state: HistoryState, shown: int) -> Callable[[], Awaitable[bool]]:
    async def holds() -> bool:
        history = (await node.history()).history
        return (history.state, history.shown) == (state, shown)

    return holds


async def test_switch_stops_and_starts_recording_and_blocks(tmp_path: Path) -> None:
    """Off, nothing is recorded and no turn gets a block; on again, what was there before is shown as it was."""
    mount = ConfigMap(tmp_path / "etc", _text(enabled=True))
    async with _node(mount.path, tmp_path / "store.db") as node:
        assert (await node.append()).disposition is Disposition.RECORDED
        before = (await node.history()).history.text
        for _ in range(2):
            mount.update(_text(enabled=False))
            await eventually(_shows(node, HistoryState.DISABLED, 0))
            assert (await node.append()).skip_reason is SkipReason.DISABLED
            mount.update(_text(enabled=True))
            await eventually(_shows(node, HistoryState.PRESENT, 1))
            assert (await node.history()).history.text == before


async def test_lowered_bound_shows_less_at_once(tmp_path: Path) -> None:
    """A lowered `max_entries` shows less without a restart, and raised again shows what is still there."""
    mount = ConfigMap(tmp_path / "etc", _text(enabled=True))
    async with _node(mount.path, tmp_path / "store.db") as node:
        for _ in range(3):
            await node.append()
        mount.update(_text(enabled=True, max_entries=1))
        await eventually(_shows(node, HistoryState.PRESENT, 1))
        mount.update(_text(enabled=True, max_entries=2))
        await eventually(_shows(node, HistoryState.PRESENT, 2))
