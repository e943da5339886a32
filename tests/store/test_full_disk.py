"""A full disk stops what grows, and nothing else."""

import asyncio
import errno
import os
from pathlib import Path

import apsw
import pytest

from sidecar.domain.eligibility import Conversation, Disposition
from sidecar.domain.errors import Code, LedgerError
from sidecar.store.reserve import RESERVE_BYTES
from sidecar.store.store import Store
from tests.support.faulty_disk import FaultyDisk
from tests.support.stores import CONVERSATION, SEAT, Clock, key, open_store, record, texts, traces

NEEDLE = "qz7Xfull"


@pytest.fixture
def reserve(store_path: Path) -> Path:
    """The file that holds space for deletes."""
    return store_path.with_name(store_path.name + ".reserve")


async def test_appends_are_told_that_the_disk_is_full(store_path: Path, disk: FaultyDisk) -> None:
    """While the disk is full appends are refused by name, and nothing of them is kept."""
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("a"), "a")
        disk.fail("write", apsw.SQLITE_FULL, ending="-wal")
        for number in range(3):
            with pytest.raises(LedgerError) as raised:
                await record(store, key(f"w{number}"))
            assert raised.value.code is Code.STORE_FULL
        assert await texts(store) == ["a"]


async def test_appends_recover_by_themselves(store_path: Path, disk: FaultyDisk) -> None:
    """As soon as there is room the same turns are recorded, once each."""
    async with open_store(store_path, vfs=disk.name) as store:
        disk.fail("write", apsw.SQLITE_FULL, ending="-wal")
        with pytest.raises(LedgerError):
            await record(store, key("a"))
        disk.heal()
        assert (await record(store, key("a"), "a")).disposition is Disposition.RECORDED
        assert (await record(store, key("a"), "a")).disposition is Disposition.DUPLICATE
        assert await texts(store) == ["a"]


async def test_reserve_is_held_from_the_start(store_path: Path, reserve: Path) -> None:
    """The space for deletes is really taken on the disk, not only named."""
    async with open_store(store_path):
        status = await asyncio.to_thread(reserve.stat)
        assert status.st_size == RESERVE_BYTES
        assert status.st_blocks * 512 >= RESERVE_BYTES


@pytest.mark.parametrize("scope", ["turn", "conversation", "seat"])
async def test_forget_goes_on_with_the_reserve(store_path: Path, reserve: Path, disk: FaultyDisk, scope: str) -> None:
    """On a full disk a Forget deletes and erases with the reserve's space, which is held again afterwards."""
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("a"), NEEDLE * 1_000)
        await record(store, key("b", "other", "other"), "kept")
        disk.be_full_beside(reserve)
        with pytest.raises(LedgerError):
            await record(store, key("c"))
        if scope == "turn":
            assert await store.forget_turn(key("a")) == 1
        elif scope == "conversation":
            assert await store.forget_conversation(Conversation(SEAT, CONVERSATION)) == 1
        else:
            assert await store.forget_seat(SEAT) == 1
        assert await store.finish_erasure()
        assert traces(store_path, NEEDLE.encode()) == {}
        assert (await asyncio.to_thread(reserve.stat)).st_size == RESERVE_BYTES
        assert await texts(store, key("", "other", "other")) == ["kept"]
        with pytest.raises(LedgerError):
            await record(store, key("c"))


async def test_reserve_is_taken_again_once_there_is_room(
    store_path: Path, reserve: Path, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reserve that a Forget used up, and that the disk could not give back at once, is held after the erasure."""
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("a"), "a")
        disk.be_full_beside(reserve)
        monkeypatch.setattr(os, "posix_fallocate", _no_room)
        assert await store.forget_turn(key("a")) == 1
        assert not await asyncio.to_thread(reserve.exists)
        monkeypatch.undo()
        disk.heal()
        assert await store.finish_erasure()
        assert (await asyncio.to_thread(reserve.stat)).st_size == RESERVE_BYTES


def _no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_forget_that_finds_no_room_at_all_says_so(store_path: Path, disk: FaultyDisk) -> None:
    """Where not even the reserve helps, a Forget fails as a whole and the turn is still there."""
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("a"), "a")
        disk.fail("write", apsw.SQLITE_FULL, ending="-wal")
        with pytest.raises(LedgerError) as raised:
            await store.forget_turn(key("a"))
        assert raised.value.code is Code.STORE_FULL
        assert await texts(store) == ["a"]
        disk.heal()
        assert await store.forget_turn(key("a")) == 1


async def test_store_on_a_full_disk_opens_later(store_path: Path, disk: FaultyDisk) -> None:
    """A store that finds the disk full at its first opening is refused as full, and opens once there is room."""
    disk.fail("write", apsw.SQLITE_FULL)
    store = Store(store_path, clock=Clock(), vfs=disk.name)
    store.start()
    waiting = asyncio.create_task(store.opened())
    await asyncio.wait({waiting}, timeout=0.3)
    with pytest.raises(LedgerError) as raised:
        await record(store, key("a"))
    assert raised.value.code is Code.STORE_FULL
    disk.heal()
    await asyncio.wait_for(waiting, 5)
    await record(store, key("a"), "a")
    assert await texts(store) == ["a"]
    await store.close()


async def test_failing_reads_are_errors(store_path: Path, disk: FaultyDisk) -> None:
    """A disk that cannot be read is an I/O error to the reader, and the next read is tried anew."""
    async with open_store(store_path) as store:
        for number in range(30):
            await record(store, key(f"w{number}"), "x" * 9_000)
    async with open_store(store_path, vfs=disk.name) as store:
        disk.fail("read", apsw.SQLITE_IOERR_READ)
        [failure] = await asyncio.gather(texts(store), return_exceptions=True)
        disk.heal()
        assert isinstance(failure, LedgerError)
        assert failure.code is Code.STORE_IO
        assert len(await texts(store)) == 30


@pytest.mark.parametrize("error", [apsw.SQLITE_PROTOCOL, apsw.SQLITE_NOMEM, apsw.SQLITE_IOERR_NOMEM])
async def test_what_passes_is_no_bug(store_path: Path, disk: FaultyDisk, error: int) -> None:
    """A race for the log's locks and a shortage of memory are told as passing, at opening and later, and pass."""
    disk.fail("read", error)
    store = Store(store_path, clock=Clock(), vfs=disk.name)
    store.start()
    waiting = asyncio.create_task(store.opened())
    await asyncio.wait({waiting}, timeout=0.3)
    assert not waiting.done()
    disk.heal()
    await asyncio.wait_for(waiting, 5)
    for number in range(30):
        await record(store, key(f"w{number}"), "x" * 9_000)
    disk.fail("read", error)
    [failure] = await asyncio.gather(texts(store), return_exceptions=True)
    disk.heal()
    assert isinstance(failure, LedgerError)
    assert failure.code in {Code.STORE_UNAVAILABLE, Code.STORE_IO}
    assert len(await texts(store)) == 30
    await store.close()
