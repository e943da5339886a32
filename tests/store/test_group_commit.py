"""Group commit: what arrives together shares a sync, and nothing is answered before its own."""

import asyncio
import threading
from pathlib import Path

import apsw
import pytest

from sidecar.domain.eligibility import Disposition
from sidecar.domain.errors import Code, LedgerError
from sidecar.store.store import Store
from tests.support.faulty_disk import FaultyDisk
from tests.support.stores import Clock, beside, entry, key, open_store, record, texts


class Gate:
    """Stops the writer at a sync of the log until it is opened, and counts the syncs."""

    def __init__(self, disk: FaultyDisk) -> None:
        self.syncs = 0
        self.reached = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._open = threading.Event()
        disk.watcher = self._watch

    def open(self) -> None:
        self._open.set()

    def _watch(self, operation: str, path: str) -> None:
        if operation == "sync" and path.endswith("-wal"):
            self.syncs += 1
            self._loop.call_soon_threadsafe(self.reached.set)
            assert self._open.wait(10)


async def test_appends_at_once_share_commits(store_path: Path, disk: FaultyDisk) -> None:
    """Sixty appends that arrive during one commit take one more, not sixty."""
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("warm"))
        gate = Gate(disk)
        first = asyncio.create_task(record(store, key("first")))
        await gate.reached.wait()
        crowd = [asyncio.create_task(record(store, key(f"w{number}"))) for number in range(60)]
        await asyncio.sleep(0)
        gate.open()
        appended = await asyncio.gather(first, *crowd)
        assert gate.syncs == 2
        disk.heal()
    assert [each.ordinal for each in appended] == list(range(2, 63))


async def test_nothing_is_answered_before_its_sync(store_path: Path, disk: FaultyDisk) -> None:
    """Neither a first append nor its duplicate is answered while the disk has not synced the row."""
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("warm"))
        gate = Gate(disk)
        tasks = [asyncio.create_task(record(store, key("same"))) for _ in range(5)]
        await gate.reached.wait()
        done, _ = await asyncio.wait(tasks, timeout=0.2)
        assert not done
        gate.open()
        answers = await asyncio.gather(*tasks)
        disk.heal()
    dispositions = [each.disposition for each in answers]
    assert dispositions == [Disposition.RECORDED] + [Disposition.DUPLICATE] * 4
    assert len({each.entry_id for each in answers}) == 1


async def test_reads_go_on_during_a_commit(store_path: Path, disk: FaultyDisk) -> None:
    """A slow disk holds up no read, and what is not yet committed is not yet read."""
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("a"), "a")
        gate = Gate(disk)
        writing = asyncio.create_task(record(store, key("b"), "b"))
        await gate.reached.wait()
        assert await asyncio.wait_for(texts(store), 5) == ["a"]
        gate.open()
        await writing
        assert await texts(store) == ["a", "b"]
        disk.heal()


async def test_caller_that_leaves_does_not_undo_the_write(store_path: Path, disk: FaultyDisk) -> None:
    """A row whose caller was cancelled during the commit is there, and its neighbours in the batch too."""
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("warm"), "warm")
        gate = Gate(disk)
        leaving = asyncio.create_task(record(store, key("a"), "a"))
        await gate.reached.wait()
        queued = asyncio.create_task(record(store, key("b"), "b"))
        staying = asyncio.create_task(record(store, key("c"), "c"))
        await asyncio.sleep(0)
        leaving.cancel()
        queued.cancel()
        gate.open()
        await staying
        disk.heal()
        assert await texts(store) == ["warm", "a", "b", "c"]


async def test_one_bad_job_fails_alone(store_path: Path, disk: FaultyDisk) -> None:
    """Of a batch with one row that the store refuses, that one fails and all others are recorded."""
    async with open_store(store_path, vfs=disk.name) as store:
        gate = Gate(disk)
        first = asyncio.create_task(record(store, key("first"), "first"))
        await gate.reached.wait()
        keys = [key(f"w{number}", "" if number == 3 else "c") for number in range(8)]
        crowd = [asyncio.create_task(record(store, each, each.work_key)) for each in keys]
        await asyncio.sleep(0)
        gate.open()
        answers = await asyncio.gather(first, *crowd, return_exceptions=True)
        disk.heal()
        assert isinstance(answers[4], apsw.ConstraintError)
        assert [each for each in answers if isinstance(each, BaseException)] == [answers[4]]
        assert await texts(store, key("", "c")) == ["w0", "w1", "w2", "w4", "w5", "w6", "w7"]


async def test_damaged_settle_fails_alone_among_appends(store: Store, store_path: Path) -> None:
    """A Settle that cannot be done takes no append of its batch with it."""
    await store.append(key("bad"), entry("x", delivered=False), "id-bad", 20)
    with beside(store_path) as db:
        db.execute("UPDATE conversation_sessions SET checksum = zeroblob(16)")
    jobs = [record(store, key(f"w{number}", "c"), f"t{number}") for number in range(10)]
    answers = await asyncio.gather(*jobs[:5], store.settle(key("bad")), *jobs[5:], return_exceptions=True)
    assert [isinstance(each, LedgerError) for each in answers] == [False] * 5 + [True] + [False] * 5
    assert await texts(store, key("", "c")) == [f"t{number}" for number in range(10)]


@pytest.mark.parametrize("operation", ["sync", "write"])
async def test_failed_commit_is_tried_again_singly(store_path: Path, disk: FaultyDisk, operation: str) -> None:
    """A disk that fails once during a shared commit costs nobody their turn."""
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("warm"), "warm")
        gate = Gate(disk)
        first = asyncio.create_task(record(store, key("first"), "first"))
        await gate.reached.wait()
        crowd = [asyncio.create_task(record(store, key(f"w{number}"), f"t{number}")) for number in range(6)]
        await asyncio.sleep(0)
        code = apsw.SQLITE_IOERR_FSYNC if operation == "sync" else apsw.SQLITE_IOERR_WRITE
        disk.fail(operation, code, ending="-wal", times=1)
        gate.open()
        answers = await asyncio.gather(first, *crowd)
        assert {each.disposition for each in answers} == {Disposition.RECORDED}
        assert await texts(store) == ["warm", "first", *(f"t{number}" for number in range(6))]


async def test_disk_that_stays_bad_is_an_error_and_then_heals(store_path: Path, disk: FaultyDisk) -> None:
    """While the disk fails each append is told so and none is kept; afterwards the same turns are recorded once."""
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("warm"), "warm")
        disk.fail("sync", apsw.SQLITE_IOERR_FSYNC, ending="-wal")
        failed = await asyncio.gather(*(record(store, key(f"w{n}")) for n in range(4)), return_exceptions=True)
        assert [each.code for each in failed if isinstance(each, LedgerError)] == [Code.STORE_IO] * 4
        assert await texts(store) == ["warm"]
        disk.heal()
        again = [await record(store, key(f"w{number}"), f"t{number}") for number in range(4)]
        assert {each.disposition for each in again} == {Disposition.RECORDED}
    async with open_store(store_path) as store:
        assert await texts(store) == ["warm", "t0", "t1", "t2", "t3"]


async def test_no_more_wait_than_there_is_room_for(store_path: Path, disk: FaultyDisk) -> None:
    """On a disk that hangs, calls beyond the room are shed, also where callers have left; later all have their turn."""
    store = Store(store_path, clock=Clock(), room=3, vfs=disk.name)
    store.start()
    await store.opened()
    assert store._erasing is not None
    await store._erasing  # what the opening began waits for the thread, too
    await record(store, key("warm"), "warm")
    gate = Gate(disk)
    first = asyncio.create_task(record(store, key("first"), "first"))
    await gate.reached.wait()
    crowd = [asyncio.create_task(record(store, key(f"w{number}"), f"t{number}")) for number in range(3)]
    await asyncio.sleep(0)
    crowd[0].cancel()
    with pytest.raises(LedgerError) as raised:
        await record(store, key("beyond"))
    assert raised.value.code is Code.OVERLOADED
    assert await texts(store) == ["warm"]
    gate.open()
    await asyncio.gather(first, *crowd[1:])
    disk.heal()
    assert (await record(store, key("beyond"), "beyond")).disposition is Disposition.RECORDED
    assert await texts(store) == ["warm", "first", "t0", "t1", "t2", "beyond"]
    await store.close()
