"""Calls of megabytes: worked on where they hold nobody up, and not too many bytes of them at once."""

import asyncio
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from turnledger.v1 import entry_pb2, record_pb2, render_pb2

import sidecar.services.record as record
import sidecar.services.render as render
import sidecar.store.store as store
from sidecar.server import decode, guard
from tests.server.test_load import stalled
from tests.support import asking
from tests.support.faulty_disk import FaultyDisk
from tests.support.refusal import refused
from tests.support.running import Caller, running, settings

_GIANT = 1_000_000

#: What takes long for a giant, and where it stands.
_WORK = (
    (decode, "append"),
    (decode, "fit"),
    (decode, "user_message"),
    (store, "new_row"),
    (record, "payload_orders"),
    (render, "build"),
)


def _watched(monkeypatch: pytest.MonkeyPatch) -> defaultdict[str, set[str]]:
    """On which threads each of that is done."""
    threads: defaultdict[str, set[str]] = defaultdict(set)

    def watch(module: Any, name: str) -> None:
        work = getattr(module, name)

        def noted(*given: Any, **named: Any) -> Any:
            threads[name].add(threading.current_thread().name)
            return work(*given, **named)

        monkeypatch.setattr(module, name, noted)

    for module, name in _WORK:
        watch(module, name)
    return threads


async def _every_work(caller: Caller, length: int) -> None:
    """Calls that lead to all of it, each with a text of that many characters."""
    call = entry_pb2.ToolCall(name="t", arguments="x" * length)
    entry = asking.entry(reply="r" * length, calls=[call])
    await caller.record.Append(asking.append("giant", entry=entry))
    fit = record_pb2.Fit(order_id="1.x.1.argument.1." + "a" * 64, original="x" * length, rewrite="y")
    await caller.record.Fit(asking.fit(fits=[fit]))
    history = (await caller.render.History(asking.history())).history
    await caller.render.UserMessage(asking.user_message(history=history, task="t" * length))


async def test_a_giant_is_worked_on_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the event loop nor a thread of the store's has the work that a giant makes."""
    threads = _watched(monkeypatch)
    async with running(settings(tmp_path)) as caller:
        await _every_work(caller, _GIANT)
    assert set(threads) == {name for _, name in _WORK}
    busy = {"MainThread", "turnledger-reader", "turnledger-writer"}
    assert {name: found & busy for name, found in threads.items() if found & busy} == {}


async def test_a_small_call_pays_for_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is usual is worked on where it comes in, and where its rows are read."""
    threads = _watched(monkeypatch)
    async with running(settings(tmp_path)) as caller:
        await _every_work(caller, 1_000)
    assert threads.pop("build") == {"turnledger-reader"}
    assert set().union(*threads.values()) == {"MainThread"}


async def test_only_so_many_bytes_are_in_work(
    tmp_path: Path, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Giants beyond the room for bytes are told to come back, small calls go on, and the room comes back."""
    monkeypatch.setattr(guard, "_IN_WORK_BYTES", 2 * _GIANT + _GIANT // 2)

    def giant(work_key: str) -> record_pb2.AppendRequest:
        return asking.append(work_key, entry=asking.entry(reply="r" * _GIANT))

    async with running(settings(tmp_path), vfs=disk.name) as caller, stalled(caller, disk) as stall:
        calls = [caller.record.Append(giant(f"g{number}")) for number in range(2)]
        waiting = [asyncio.ensure_future(call) for call in calls]
        await stall.reached.wait()
        refusal = await refused(caller.record.Append(giant("g2")))
        assert (refusal.reason, refusal.retry_after_s is not None) == ("OVERLOADED", True)
        state = (await caller.render.History(asking.history(conversation_key="small"))).history.state
        assert state == render_pb2.HISTORY_STATE_EMPTY
        stall.end()
        for each in waiting:
            assert (await each).disposition == record_pb2.DISPOSITION_RECORDED
        assert (await caller.record.Append(giant("g2"))).disposition == record_pb2.DISPOSITION_RECORDED
