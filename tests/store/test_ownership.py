"""One process owns a store, for as long as it lives and has the file that it opened."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.domain.errors import Code, LedgerError
from sidecar.store.lock import Lock
from sidecar.store.store import Store
from tests.support.stores import Clock, beside, entry, files_in, key, open_store, read, record, texts

#: Takes the lock in another process, says so, and keeps it.
HOLDER = """
import pathlib, sys
from sidecar.store.lock import Lock
lock = Lock(pathlib.Path(sys.argv[1]))
print(lock.acquire(), flush=True)
sys.stdin.read()
"""


async def test_second_store_waits_and_takes_over(store_path: Path) -> None:
    """A second store refuses with a reason while the first is open, and opens by itself once that closes."""
    async with open_store(store_path) as first:
        await record(first, key("a"), "a")
        second = Store(store_path, clock=Clock())
        second.start()
        waiting = asyncio.create_task(second.opened())
        done, _ = await asyncio.wait({waiting}, timeout=0.5)
        assert not done
        for call in (read(second), record(second, key("b")), second.settle(key("a")), second.forget_turn(key("a"))):
            with pytest.raises(LedgerError, match="another") as raised:
                await call
            assert raised.value.code is Code.STORE_UNAVAILABLE
        await record(first, key("c"), "c")
    await asyncio.wait_for(waiting, 5)
    assert await texts(second) == ["a", "c"]
    await second.close()


def test_killed_process_frees_the_lock(store_path: Path) -> None:
    """A lock ends with its process, however that ends."""
    lock = Lock(store_path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(store_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "True\n"
            assert not lock.acquire()
        finally:
            holder.send_signal(signal.SIGKILL)
            holder.wait(10)
    assert lock.acquire()
    lock.release()


def test_lock_is_for_one_and_can_be_taken_again(store_path: Path) -> None:
    """Two objects of one process exclude each other as two processes do; released, either may have it."""
    one, other = Lock(store_path), Lock(store_path)
    with one:
        assert one.acquire()
        assert one.held
        assert not other.acquire()
        assert not other.held
    assert other.acquire()
    other.release()
    other.release()
    assert one.acquire()
    one.release()


async def test_closing_while_opening_leaves_no_owner(store_path: Path) -> None:
    """A store that is closed before it was open holds nothing afterwards."""
    for _ in range(10):
        store = Store(store_path, clock=Clock())
        store.start()
        await asyncio.sleep(0)
        await store.close()
    async with open_store(store_path) as store:
        await record(store, key("a"))


async def test_closed_store_refuses(store_path: Path) -> None:
    """After closing every call is refused as unavailable; closing again is harmless."""
    async with open_store(store_path) as store:
        await record(store, key("a"))
    with pytest.raises(LedgerError) as raised:
        await record(store, key("b"))
    assert raised.value.code is Code.STORE_UNAVAILABLE


async def test_closing_finishes_what_was_accepted(store_path: Path) -> None:
    """Appends that were under way when the store closed are answered, and are there."""
    async with open_store(store_path) as store:
        accepted = [asyncio.create_task(record(store, key(f"w{n}"), f"t{n}")) for n in range(200)]
        await asyncio.sleep(0)
    await asyncio.gather(*accepted)
    assert "store.db-wal" not in files_in(store_path.parent)
    async with open_store(store_path) as store:
        assert await texts(store) == [f"t{n}" for n in range(200)]


@pytest.mark.parametrize("fate", ["deleted", "replaced"])
async def test_file_that_is_gone_is_refused(store_path: Path, fate: str) -> None:
    """A store whose file was deleted or replaced takes no writes that nobody would ever see, and answers no reads."""
    async with open_store(store_path) as store:
        await record(store, key("a"), "a")
        await asyncio.to_thread(store_path.rename, store_path.with_name("moved"))
        if fate == "replaced":
            with beside(store_path) as db:
                db.execute("CREATE TABLE other (x)")
        for call in (read(store), record(store, key("b")), store.settle(key("a")), store.forget_turn(key("a"))):
            with pytest.raises(LedgerError) as raised:
                await call
            assert raised.value.code is Code.STORE_UNAVAILABLE
    if fate == "replaced":
        with beside(store_path) as db:
            assert db.execute("SELECT name FROM sqlite_schema").get == "other"


async def test_file_that_cannot_be_made_is_tried_again(tmp_path: Path) -> None:
    """A store whose file cannot be created says so, opens once it can be, and closes cleanly in between."""
    path = tmp_path / "store.db"
    path.symlink_to(tmp_path / "missing" / "elsewhere.db")
    store = Store(path, clock=Clock())
    store.start()
    waiting = asyncio.create_task(store.opened())
    await asyncio.wait({waiting}, timeout=0.3)
    with pytest.raises(LedgerError) as raised:
        await read(store)
    assert raised.value.code in {Code.STORE_UNAVAILABLE, Code.STORE_IO}
    (tmp_path / "missing").mkdir()
    await asyncio.wait_for(waiting, 5)
    await store.append(key("a"), entry("a"), "id", 20)
    await store.close()


async def test_folder_that_is_a_file_is_refused_and_tried_again(tmp_path: Path) -> None:
    """A store whose folder cannot be used says that it is the folder, and opens once it can be."""
    (tmp_path / "folder").touch()
    store = Store(tmp_path / "folder" / "store.db", clock=Clock())
    store.start()
    waiting = asyncio.create_task(store.opened())
    await asyncio.wait({waiting}, timeout=0.3)
    with pytest.raises(LedgerError, match="folder") as raised:
        await read(store)
    assert raised.value.code is Code.STORE_UNAVAILABLE
    (tmp_path / "folder").unlink()
    await asyncio.wait_for(waiting, 5)
    await store.close()
