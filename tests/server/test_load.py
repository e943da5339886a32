"""Too many calls, and calls that take too long."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from turnledger.v1 import record_pb2

import sidecar.server.server as server
from sidecar.server.guard import Rpc
from tests.support import asking
from tests.support.faulty_disk import FaultyDisk
from tests.support.patience import PATIENCE_S, served
from tests.support.refusal import refused
from tests.support.running import Caller, running, settings

Code = grpc.StatusCode


class Stall:
    """Holds the store's writer at its next sync of the log."""

    def __init__(self, disk: FaultyDisk) -> None:
        self._disk = disk
        self._go = threading.Event()
        self._loop = asyncio.get_running_loop()
        self.reached = asyncio.Event()
        disk.watcher = self._watch

    def end(self) -> None:
        self._go.set()
        self._disk.heal()

    def _watch(self, operation: str, path: str) -> None:
        if operation == "sync" and path.endswith("-wal"):
            self._loop.call_soon_threadsafe(self.reached.set)
            self._go.wait(PATIENCE_S)


@asynccontextmanager
async def stalled(caller: Caller, disk: FaultyDisk) -> AsyncIterator[Stall]:
    """A stall of the next commit, once everything that the opening began is through."""
    await caller.record.Append(asking.append("before"), timeout=PATIENCE_S)
    stall = Stall(disk)
    try:
        yield stall
    finally:
        stall.end()


def _shorten_deadlines(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    def shortened(name: str, request: Any, serve: Any, _: float) -> Any:
        return Rpc(name, request, serve, seconds)

    monkeypatch.setattr(server, "Rpc", shortened)


async def test_overloaded(tmp_path: Path, disk: FaultyDisk) -> None:
    """Beyond the configured number of calls the next is told to come back, and comes in once there is room."""
    async with running(settings(tmp_path, concurrent_calls=1), vfs=disk.name) as caller, stalled(caller, disk) as stall:
        slow = caller.record.Append(asking.append())
        waiting = asyncio.ensure_future(slow)
        await stall.reached.wait()
        for call in (caller.record.Append(asking.append("w2")), caller.render.History(asking.history())):
            refusal = await refused(call)
            assert (refusal.code, refusal.domain, refusal.reason) == (
                Code.RESOURCE_EXHAUSTED,
                "turnledger",
                "OVERLOADED",
            )
            assert refusal.retry_after_s is not None
        stall.end()
        assert (await waiting).disposition == record_pb2.DISPOSITION_RECORDED
        assert (await caller.render.History(asking.history())).history.shown == 2


async def test_room_comes_back_whatever_a_call_came_to(tmp_path: Path) -> None:
    """Refused, cancelled and failed calls give their room back."""
    async with running(settings(tmp_path, concurrent_calls=1)) as caller:
        for _ in range(3):
            await refused(caller.record.Append(record_pb2.AppendRequest()))
            await refused(caller.send("Record/Append", b"\xff"))
            cancelled = caller.record.Append(asking.append())
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
        await served(lambda: caller.record.Append(asking.append()), meanwhile=Code.RESOURCE_EXHAUSTED)


async def test_callers_deadline(tmp_path: Path, disk: FaultyDisk) -> None:
    """A caller's deadline passes while the disk is slow; the commit goes through and the retry is a duplicate."""
    async with running(settings(tmp_path), vfs=disk.name) as caller, stalled(caller, disk) as stall:
        refusal = await refused(caller.record.Append(asking.append(), timeout=0.3))
        assert refusal.code is Code.DEADLINE_EXCEEDED
        stall.end()
        retried = await caller.record.Append(asking.append())
        assert (retried.disposition, retried.ordinal) == (record_pb2.DISPOSITION_DUPLICATE, 2)


async def test_own_deadline(tmp_path: Path, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the caller sets no deadline the sidecar's own holds; after the late commit the retry is a duplicate."""
    _shorten_deadlines(monkeypatch, 0.5)
    async with running(settings(tmp_path), vfs=disk.name) as caller, stalled(caller, disk) as stall:
        refusal = await refused(caller.record.Append(asking.append()))
        assert (refusal.code, refusal.domain, refusal.reason) == (Code.DEADLINE_EXCEEDED, "turnledger", "DEADLINE")
        stall.end()
        retried = await caller.record.Append(asking.append(), timeout=PATIENCE_S)
        assert retried.disposition == record_pb2.DISPOSITION_DUPLICATE


async def test_callers_longer_deadline_holds(tmp_path: Path, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline that the caller sets is not cut short by the sidecar's own."""
    _shorten_deadlines(monkeypatch, 0.05)
    async with running(settings(tmp_path), vfs=disk.name) as caller, stalled(caller, disk) as stall:
        waiting = asyncio.ensure_future(caller.record.Append(asking.append(), timeout=PATIENCE_S))
        await stall.reached.wait()
        done, _ = await asyncio.wait({waiting}, timeout=0.3)
        stall.end()
        assert not done
        assert (await waiting).disposition == record_pb2.DISPOSITION_RECORDED


async def test_deadlines_are_those_of_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a caller's deadline: History 5 s, UserMessage 2 s, Append and Fit 30 s, and every RPC has one."""
    found: dict[str, float] = {}

    def noting(name: str, request: Any, serve: Any, deadline_s: float) -> Any:
        found[name] = deadline_s
        return Rpc(name, request, serve, deadline_s)

    monkeypatch.setattr(server, "Rpc", noting)
    async with running(settings(tmp_path)):
        assert {name.partition("/")[2] for name in found} == {
            "Append",
            "Fit",
            "Settle",
            "Forget",
            "History",
            "UserMessage",
        }
        assert [found[f"Render/{name}"] for name in ("History", "UserMessage")] == [5, 2]
        assert [found[f"Record/{name}"] for name in ("Append", "Fit")] == [30, 30]
        assert all(0 < each <= 300 for each in found.values())
