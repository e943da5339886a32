"""Ended under load, gently or not: what was acknowledged is there after a restart, once."""

import asyncio
import itertools
import signal
import threading
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from turnledger.v1 import record_pb2

from sidecar.app.app import App, Launch
from tests.support import asking
from tests.support.faulty_disk import FaultyDisk
from tests.support.patience import PATIENCE_S
from tests.support.running import Caller, Process, calling, free_port, process, running, settings
from tests.support.stores import files_in

RECORDED = record_pb2.DISPOSITION_RECORDED
DUPLICATE = record_pb2.DISPOSITION_DUPLICATE

WRITERS = 16
#: Acknowledged turns after which the process is ended, and the most that a writer tries.
ENOUGH = 150
MOST = 2_000


@dataclass(slots=True)
class Load:
    """Writers that append turns of their own until the process is gone."""

    acknowledged: dict[tuple[str, str], str] = field(default_factory=dict)
    unknown: set[tuple[str, str]] = field(default_factory=set)
    codes: set[grpc.StatusCode] = field(default_factory=set)
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self, caller: Caller, writer: int) -> None:
        conversation = f"c{writer % 4}"
        for number in itertools.islice(itertools.count(), MOST):
            turn = (conversation, f"{writer}-{number}")
            try:
                answer = await caller.record.Append(_request(*turn))
            except grpc.aio.AioRpcError as error:
                self.unknown.add(turn)
                self.codes.add(error.code())
                return
            assert answer.disposition == RECORDED
            self.acknowledged[turn] = answer.entry_id
            if len(self.acknowledged) >= ENOUGH:
                self.enough.set()


def _request(conversation: str, work_key: str) -> record_pb2.AppendRequest:
    turn = asking.entry(reply=f"{work_key} " + "x" * 500)
    return asking.append(work_key, conversation_key=conversation, entry=turn)


async def end_under_load(one: Process, number: signal.Signals) -> tuple[Load, int]:
    """Load the process, end it in the middle, and answer what its callers know and its exit code."""
    load = Load()
    async with calling(one.target) as caller:
        writers = [asyncio.create_task(load.write(caller, writer)) for writer in range(WRITERS)]
        await asyncio.wait_for(load.enough.wait(), 30)
        one.send(number)
        await asyncio.gather(*writers)
        return load, await one.ended()


async def nothing_is_lost_or_doubled(caller: Caller, load: Load) -> None:
    """Redeliver everything: what was acknowledged is a duplicate under its id, and the ordinals have no hole."""
    ordinals: dict[str, set[int]] = {}
    turns = [*load.acknowledged, *load.unknown]
    answers = await asyncio.gather(*(caller.record.Append(_request(*turn)) for turn in turns))
    for turn, answer in zip(turns, answers, strict=True):
        if turn in load.acknowledged:
            assert (answer.disposition, answer.entry_id) == (DUPLICATE, load.acknowledged[turn])
        assert answer.disposition in {RECORDED, DUPLICATE}
        assert answer.ordinal not in ordinals.setdefault(turn[0], set())
        ordinals[turn[0]].add(answer.ordinal)
    for found in ordinals.values():
        assert found == set(range(1, len(found) + 1))
    for conversation in ordinals:
        history = (await caller.render.History(asking.history(conversation_key=conversation))).history
        assert history.unreadable == 0
        assert history.shown + history.condensed + history.left_out == min(20, len(ordinals[conversation]))


@pytest.mark.parametrize(
    ("wire", "number"),
    [
        ("socket", signal.SIGTERM),
        ("socket", signal.SIGKILL),
        ("tcp", signal.SIGINT),
        ("tcp", signal.SIGKILL),
    ],
)
async def test_acknowledged_turns_survive(tmp_path: Path, wire: str, number: signal.Signals) -> None:
    """Whatever ends the process under load, every acknowledged turn is there after a restart, and none twice."""
    listen = f"unix://{tmp_path}/s.sock" if wire == "socket" else f"127.0.0.1:{free_port()}"
    async with process(listen, store=tmp_path / "store.db") as one:
        await one.says("the store is open")
        load, code = await end_under_load(one, number)
    assert code == (-signal.SIGKILL if number is signal.SIGKILL else 0)
    assert load.codes <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    async with process(listen, store=tmp_path / "store.db") as two, calling(two.target) as caller:
        await two.says("the store is open")
        await nothing_is_lost_or_doubled(caller, load)
        two.send(signal.SIGTERM)
        assert await two.ended() == 0
    assert "Traceback" not in two.log


async def test_ends_again_and_again_in_the_middle_of_one_replay(tmp_path: Path) -> None:
    """A replay that meets kills, and goes on after each, records every turn exactly once, in order."""
    listen, total = f"unix://{tmp_path}/s.sock", 90
    done = 0
    for kill_at in (30, 60, total):
        async with process(listen, store=tmp_path / "store.db") as one, calling(one.target) as caller:
            await one.says("the store is open")
            for number in range(max(0, done - 3), kill_at):
                answer = await caller.record.Append(_request("c", f"w{number}"))
                assert answer.ordinal == number + 1
                assert (answer.disposition == DUPLICATE) == (number < done)
            done = kill_at
            one.send(signal.SIGKILL)
            await one.ended()


async def test_gentle_end_finishes_what_runs(tmp_path: Path, disk: FaultyDisk) -> None:
    """A call that is under way when the sidecar stops gets its answer, and its turn is there."""
    app, go, reached = App(Launch(settings(tmp_path), vfs=disk.name)), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def stall(operation: str, path: str) -> None:
        if operation == "sync" and path.endswith("-wal"):
            loop.call_soon_threadsafe(reached.set)
            go.wait(PATIENCE_S)

    await app.startup()
    await app.opened()
    async with calling(app.address.target) as caller:
        await caller.record.Append(asking.append("before"))
        disk.watcher = stall
        under_way = asyncio.ensure_future(caller.record.Append(asking.append()))
        await reached.wait()
        stopping = asyncio.create_task(app.shutdown())
        await asyncio.wait({under_way}, timeout=0.3)
        go.set()
        assert (await under_way).disposition == RECORDED
        await stopping
    async with running(settings(tmp_path)) as caller:
        assert (await caller.render.History(asking.history())).history.shown == 2


async def test_gentle_end_leaves_a_single_file(tmp_path: Path) -> None:
    """After SIGTERM the store is one file, without log or index beside it, and the socket is gone."""
    async with process(f"unix://{tmp_path}/s.sock", store=tmp_path / "store.db") as one:
        await one.says("the store is open")
        async with calling(one.target) as caller:
            await caller.record.Append(asking.append())
        one.send(signal.SIGTERM)
        assert await one.ended() == 0
    left = files_in(tmp_path)
    assert left <= {"store.db", "store.db.lock", "store.db.reserve", "s.sock.lock"}
    assert "store.db" in left


async def test_nothing_of_an_entry_is_logged(tmp_path: Path) -> None:
    """The log of a process holds no word of what it was given, refused requests included."""
    async with process(f"unix://{tmp_path}/s.sock", store=tmp_path / "store.db") as one:
        await one.says("the store is open")
        async with calling(one.target) as caller:
            await caller.record.Append(asking.append(entry=asking.entry(reply="SECRETWORD", trigger="SECRETWORD")))
            bad = asking.append(entry=asking.entry(reply="SECRETWORD", decision="SECRET WORD"))
            with pytest.raises(grpc.aio.AioRpcError):
                await caller.record.Append(bad)
            with pytest.raises(grpc.aio.AioRpcError):
                await caller.send("Record/Append", b"\xffSECRETWORD")
            await caller.record.Forget(asking.forget_seat())
        one.send(signal.SIGTERM)
        assert await one.ended() == 0
    assert "SECRET" not in one.log
