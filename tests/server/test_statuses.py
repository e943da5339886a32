"""The table of failures, row by row over the wire: status, reason, retry, and never an exception's text."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import grpc
import pytest
from turnledger.limits import MESSAGE_BYTES
from turnledger.v1 import record_pb2, render_pb2

from sidecar.store.lock import Lock
from tests.support import asking
from tests.support.faulty_disk import FaultyDisk
from tests.support.patience import eventually, served
from tests.support.refusal import Refusal, refused
from tests.support.running import Caller, calling, running, settings, started
from tests.support.stores import beside

Code = grpc.StatusCode


async def refusals(caller: Caller) -> AsyncIterator[Refusal]:
    """What one call of each RPC is answered that cannot be served without the store."""
    yield await refused(caller.record.Append(asking.append()))
    yield await refused(caller.record.Settle(asking.settle()))
    yield await refused(caller.record.Forget(asking.forget_seat()))
    yield await refused(caller.render.History(asking.history()))


async def _all_refused(caller: Caller, code: grpc.StatusCode, reason: str, *, retry: bool) -> None:
    async for refusal in refusals(caller):
        assert (refusal.code, refusal.domain, refusal.reason) == (code, "turnledger", reason)
        assert (refusal.retry_after_s is not None) == retry
        assert refusal.message
        assert not refusal.fields


async def _is_told(caller: Caller, what: str) -> bool:
    return what in (await refused(caller.render.History(asking.history()))).message


@pytest.mark.parametrize("wire", ["socket", "tcp"])
async def test_too_large(tmp_path: Path, wire: str) -> None:
    """A message over 32 MiB is refused by name, on either wire; one just below is served."""
    listen = "127.0.0.1:0" if wire == "tcp" else None
    async with running(settings(tmp_path, listen=listen)) as caller:
        head = asking.user_message(task="").SerializeToString()
        fits = asking.user_message(task="x" * (MESSAGE_BYTES - len(head) - 200))
        assert len((await caller.render.UserMessage(fits)).text) > MESSAGE_BYTES - 1_000
        refusal = await refused(caller.record.Append(asking.append(entry=asking.entry(reply="x" * MESSAGE_BYTES))))
        assert (refusal.code, refusal.domain, refusal.reason) == (Code.RESOURCE_EXHAUSTED, "turnledger", "TOO_LARGE")
        assert refusal.retry_after_s is None
        assert (await caller.render.History(asking.history())).history.state == render_pb2.HISTORY_STATE_EMPTY


async def test_store_held_by_another_sidecar(tmp_path: Path) -> None:
    """While another process owns the store each call is told to come back; once that is gone, calls are served."""
    other = Lock(tmp_path / "store.db.lock")
    assert other.acquire()
    async with running(settings(tmp_path), opened=False) as caller:
        await caller.channel.channel_ready()
        await eventually(lambda: _is_told(caller, "another sidecar"))
        await _all_refused(caller, Code.UNAVAILABLE, "STORE_UNAVAILABLE", retry=True)
        assert (await caller.render.UserMessage(asking.user_message())).text
        other.release()
        await served(lambda: caller.render.History(asking.history()))


async def test_store_locked_by_another_program(tmp_path: Path) -> None:
    """A write lock that another program holds on the file is an error that says to come back, and reads go on."""
    async with running(settings(tmp_path)) as caller:
        with beside(tmp_path / "store.db") as db:
            db.execute("BEGIN IMMEDIATE")
            refusal = await refused(caller.record.Append(asking.append()))
            assert (refusal.code, refusal.reason) == (Code.UNAVAILABLE, "STORE_UNAVAILABLE")
            assert refusal.retry_after_s is not None
            assert (await caller.render.History(asking.history())).history.state == render_pb2.HISTORY_STATE_EMPTY
            db.execute("ROLLBACK")
        assert (await caller.record.Append(asking.append())).disposition == record_pb2.DISPOSITION_RECORDED


async def test_file_gone(tmp_path: Path) -> None:
    """A file that is deleted under the running sidecar is an error for reads and writes alike."""
    async with running(settings(tmp_path)) as caller:
        await caller.record.Append(asking.append())
        (tmp_path / "store.db").rename(tmp_path / "moved")
        await _all_refused(caller, Code.UNAVAILABLE, "STORE_UNAVAILABLE", retry=True)


async def test_store_full(tmp_path: Path, disk: FaultyDisk) -> None:
    """On a full disk Append is refused by name; History and Forget go on, and Append does once there is room."""
    async with running(settings(tmp_path), vfs=disk.name) as caller:
        await caller.record.Append(asking.append("w0"))
        disk.be_full_beside(tmp_path / "store.db.reserve")
        refusal = await refused(caller.record.Append(asking.append()))
        assert (refusal.code, refusal.domain, refusal.reason) == (Code.RESOURCE_EXHAUSTED, "turnledger", "STORE_FULL")
        assert (await caller.render.History(asking.history())).history.shown == 1
        forgotten = await caller.record.Forget(asking.forget_turn("w0"))
        assert (forgotten.forgotten, forgotten.erasure) == (1, record_pb2.ERASURE_COMPLETE)
        disk.heal()
        assert (await caller.record.Append(asking.append())).disposition == record_pb2.DISPOSITION_RECORDED


@pytest.mark.parametrize("code", [apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC])
async def test_store_io(tmp_path: Path, disk: FaultyDisk, code: int) -> None:
    """A disk that fails is an error that may be retried, and the retry is recorded once."""
    async with running(settings(tmp_path), vfs=disk.name) as caller:
        disk.fail("sync" if code == apsw.SQLITE_IOERR_FSYNC else "write", code, ending="-wal")
        refusal = await refused(caller.record.Append(asking.append()))
        assert (refusal.code, refusal.domain, refusal.reason) == (Code.UNAVAILABLE, "turnledger", "STORE_IO")
        disk.heal()
        assert (await caller.record.Append(asking.append())).ordinal == 1


async def test_store_io_at_a_read(tmp_path: Path, disk: FaultyDisk) -> None:
    """A disk that cannot be read is an error to History, and never an empty history."""
    async with running(settings(tmp_path)) as caller:
        for number in range(10):
            await caller.record.Append(asking.append(f"w{number}", entry=asking.entry(reply="x" * 9_000)))
    async with running(settings(tmp_path), vfs=disk.name) as caller:
        disk.fail("read", apsw.SQLITE_IOERR_READ)
        refusal = await refused(caller.render.History(asking.history()))
        disk.heal()
        assert (refusal.code, refusal.reason) == (Code.UNAVAILABLE, "STORE_IO")
        assert (await caller.render.History(asking.history())).history.state == render_pb2.HISTORY_STATE_PRESENT


@pytest.mark.parametrize("damage", ["garbage", "truncated", "foreign"])
async def test_store_corrupt(tmp_path: Path, damage: str) -> None:
    """Over a file that is no store of ours the sidecar binds, and each call gets DATA_LOSS."""
    path = tmp_path / "store.db"
    if damage == "garbage":
        path.write_bytes(b"garbage " * 1_000)
    elif damage == "foreign":
        with beside(path) as db:
            db.execute("CREATE TABLE theirs (x)")
    else:
        async with running(settings(tmp_path)) as caller:
            await caller.record.Append(asking.append())
        os.truncate(path, 5_000)
    async with started(settings(tmp_path), opened=False) as app, calling(app.address.target) as caller:
        await asyncio.gather(app.opened(), return_exceptions=True)
        await _all_refused(caller, Code.DATA_LOSS, "STORE_CORRUPT", retry=False)
        assert (await caller.render.UserMessage(asking.user_message())).text


async def test_all_entries_unreadable(tmp_path: Path) -> None:
    """A conversation of which no entry can be read is DATA_LOSS, while others are served."""
    async with running(settings(tmp_path)) as caller:
        await caller.record.Append(asking.append())
        with beside(tmp_path / "store.db") as db:
            db.execute("UPDATE conversation_sessions SET checksum = zeroblob(16)")
        refusal = await refused(caller.render.History(asking.history()))
        assert (refusal.code, refusal.reason) == (Code.DATA_LOSS, "STORE_CORRUPT")
        other = await caller.render.History(asking.history(conversation_key="other"))
        assert other.history.state == render_pb2.HISTORY_STATE_EMPTY


async def test_store_newer(tmp_path: Path) -> None:
    """Over a store of a later program the sidecar binds, and each call is told which program to run."""
    async with running(settings(tmp_path)) as caller:
        await caller.record.Append(asking.append())
    with beside(tmp_path / "store.db") as db:
        db.execute("INSERT INTO schema_migrations VALUES (999, 'later', 'x', 1)")
    async with started(settings(tmp_path), opened=False) as app, calling(app.address.target) as caller:
        await asyncio.gather(app.opened(), return_exceptions=True)
        await _all_refused(caller, Code.FAILED_PRECONDITION, "STORE_NEWER", retry=False)


@pytest.mark.parametrize(
    "path",
    [
        "/turnledger.v1.Render/Entries",
        "/turnledger.v1.Record/History",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        "/grpc.channelz.v1.Channelz/GetServers",
    ],
)
async def test_nothing_but_the_two_services(caller: Caller, path: str) -> None:
    """There is no reflection, no channelz and no method beside the contract's."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await caller.call(path, b"")
    assert raised.value.code() is Code.UNIMPLEMENTED
