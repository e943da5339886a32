"""A running process whose settings, clock and signals change: nothing acknowledged is lost, and nobody restarts it."""

import asyncio
import grp
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import msgspec
import pytest
from turnledger.v1 import record_pb2, render_pb2

from sidecar.config.settings import ConversationSession, Sweep
from tests.support import asking
from tests.support.config_map import ConfigMap
from tests.support.patience import eventually, served
from tests.support.running import Caller, Process, calling, process, running, settings
from tests.support.stores import beside

DISABLED = render_pb2.HISTORY_STATE_DISABLED
PRESENT = render_pb2.HISTORY_STATE_PRESENT


def _text(*, enabled: bool) -> str:
    return f"turn_engine: {{conversation_session: {{enabled: {str(enabled).lower()}}}}}"


@asynccontextmanager
async def _configured(folder: Path, text: str) -> AsyncIterator[tuple[Process, Caller, ConfigMap]]:
    mount = ConfigMap(folder / "etc", text)
    listen = f"unix://{folder}/s.sock"
    async with (
        process(listen, "--config", str(mount.path), store=folder / "store.db") as one,
        calling(one.target) as caller,
    ):
        await one.says("listening on")
        yield one, caller, mount


async def _becomes(caller: Caller, state: int) -> float:
    """Seconds until the history has the state."""
    began = time.monotonic()

    async def has() -> bool:
        return (await served(lambda: caller.render.History(asking.history()))).history.state == state

    await eventually(has)
    return time.monotonic() - began


async def test_the_switch_flips_both_ways_under_load(tmp_path: Path) -> None:
    """ConfigMap swaps turn the ledger off and on again, each within 2 s; no acknowledged turn is lost meanwhile."""
    async with _configured(tmp_path, _text(enabled=True)) as (one, caller, mount):
        await one.says("the store is open")
        recorded: list[str] = []
        stopping = asyncio.Event()

        async def write() -> None:
            for work_key in (f"w{number}" for number in itertools.count()):
                if stopping.is_set():
                    return
                answer = await caller.record.Append(asking.append(work_key))
                if answer.disposition == record_pb2.DISPOSITION_RECORDED:
                    recorded.append(work_key)

        writing = asyncio.create_task(write())
        await _becomes(caller, PRESENT)
        took = []
        for _ in range(2):
            mount.update(_text(enabled=False))
            took.append(await _becomes(caller, DISABLED))
            mount.update(_text(enabled=True))
            took.append(await _becomes(caller, PRESENT))
        stopping.set()
        await writing
        assert max(took) < 2
        for work_key in recorded[:: max(len(recorded) // 50, 1)]:
            answer = await caller.record.Append(asking.append(work_key))
            assert answer.disposition == record_pb2.DISPOSITION_DUPLICATE
        one.send(signal.SIGTERM)
        assert await one.ended() == 0


async def test_sighup_is_at_once_and_a_broken_file_keeps_what_holds(tmp_path: Path) -> None:
    """After SIGHUP the file holds within a moment; a broken one changes nothing and is said."""
    async with _configured(tmp_path, _text(enabled=True)) as (one, caller, mount):
        mount.update(_text(enabled=False))
        one.send(signal.SIGHUP)
        await one.says("enabled true -> false")
        mount.update("turn_engine: {conversation_session: {enabled: perhaps}}")
        one.send(signal.SIGHUP)
        await one.says("the settings stay as they were")
        await one.says("turn_engine.conversation_session.enabled")
        assert await _becomes(caller, DISABLED) < 2


async def test_a_wrong_start_is_put_right_without_a_restart(tmp_path: Path) -> None:
    """A process that started with a wrong file says so to each call, and serves once the file is right."""
    async with _configured(tmp_path, "sidecar: {lisen: x}") as (one, caller, mount):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await caller.record.Append(asking.append())
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        mount.update(_text(enabled=True))
        await one.says("the store is open")

        async def append() -> record_pb2.AppendResponse:
            return await caller.record.Append(asking.append())

        assert (await served(append)).disposition == record_pb2.DISPOSITION_RECORDED
        one.send(signal.SIGTERM)
        assert await one.ended() == 0


async def test_a_second_sigterm_hurries(tmp_path: Path) -> None:
    """With a call that does not end, a second SIGTERM ends the process at once, in order and with 0."""
    listen = f"unix://{tmp_path}/s.sock"
    async with process(listen, store=tmp_path / "store.db") as one, calling(one.target) as caller:
        await one.says("the store is open")
        with beside(tmp_path / "store.db") as db:
            db.execute("BEGIN IMMEDIATE")  # a foreign writer: an Append waits for it
            appending = asyncio.ensure_future(caller.record.Append(asking.append(), timeout=20))
            await asyncio.sleep(0.3)
            began = time.monotonic()
            one.send(signal.SIGTERM)
            await one.says("stopping")
            one.send(signal.SIGTERM)
            await one.says("asked to stop a second time")
            db.execute("ROLLBACK")
        assert await one.ended() == 0
        assert time.monotonic() - began < 8
        with pytest.raises(grpc.aio.AioRpcError):
            await appending
    assert "the store: done in" in one.log


async def test_each_phase_is_logged_with_its_time(tmp_path: Path) -> None:
    """Whoever reads the log of a start and a stop sees what came when and how long it took."""
    async with process(f"unix://{tmp_path}/s.sock", store=tmp_path / "store.db") as one:
        await one.says("the store is open")
        await one.says("health on")
        one.send(signal.SIGTERM)
        assert await one.ended() == 0
    places = [
        one.log.index(phase)
        for phase in (
            "listening: done in",
            "the store is open",
            "stopping",
            "the calls under way: done in",
            "maintenance and commands: done in",
            "the store: done in",
            "telemetry: done in",
            "stopped",
        )
    ]
    assert places == sorted(places)


async def test_retention_sweeps_by_itself(tmp_path: Path) -> None:
    """With an interval of a second, a row past `retention_days` is gone after two looks, and a young one stays."""
    base = settings(tmp_path, session=ConversationSession(retention_days=2))
    often = msgspec.structs.replace(base.sidecar, sweep=Sweep(interval_s=1))
    async with running(msgspec.structs.replace(base, sidecar=often)) as caller:
        for number in range(3):
            await caller.record.Append(asking.append(f"w{number}"))
        with beside(tmp_path / "store.db") as db:
            db.execute("UPDATE conversation_sessions SET created_at = created_at - 3 * 86400 WHERE work_key = 'w0'")
            db.execute("UPDATE conversation_sessions SET created_at = created_at - 86400 WHERE work_key = 'w1'")

        async def swept() -> bool:
            history = (await caller.render.History(asking.history())).history
            return (history.shown, history.no_longer_kept) == (2, 1)

        await eventually(swept)


async def test_the_socket_goes_to_its_group(tmp_path: Path) -> None:
    """`socket_group` is the group that may use the socket; one that cannot be had is said, and the sidecar serves."""
    mine = grp.getgrgid(os.getegid()).gr_name
    for group, said in ((mine, "listening on"), ("no-such-group", "the socket keeps the group that it has")):
        async with process(
            f"unix://{tmp_path}/s.sock", store=tmp_path / "store.db", variables={"TURNLEDGER_SOCKET_GROUP": group}
        ) as one:
            await one.says(said)
            await one.says("the store is open")
            status = (tmp_path / "s.sock").stat()
            assert (status.st_gid, status.st_mode & 0o777) == (os.getegid(), 0o660)
            one.send(signal.SIGTERM)
            assert await one.ended() == 0


async def test_a_setgid_folder_gives_its_group(tmp_path: Path) -> None:
    """Without `socket_group` the socket has the group of a setgid folder, so that engine and sidecar may differ."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another group")
    shared = tmp_path / "run"
    shared.mkdir()
    os.chown(shared, -1, 12_345)
    shared.chmod(0o2770)
    async with process(f"unix://{shared}/s.sock", store=tmp_path / "store.db") as one:
        await one.says("listening on")
        status = (shared / "s.sock").stat()
        assert (status.st_gid, status.st_mode & 0o777) == (12_345, 0o660)
