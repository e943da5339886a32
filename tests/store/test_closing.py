"""The end of a store on a disk that fails."""

import asyncio
import logging
from pathlib import Path

import apsw
import pytest

from tests.support.faulty_disk import FaultyDisk
from tests.support.stores import key, open_store, record, texts


@pytest.mark.parametrize(
    ("operation", "code"),
    [("write", apsw.SQLITE_FULL), ("sync", apsw.SQLITE_IOERR_FSYNC), ("read", apsw.SQLITE_IOERR_READ)],
)
async def test_a_disk_that_fails_at_the_end_costs_no_turn(
    store_path: Path, disk: FaultyDisk, caplog: pytest.LogCaptureFixture, operation: str, code: int
) -> None:
    """A log that cannot be moved at the end stays for the next start: the store closes, says so, and loses nothing."""
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("w1"), "kept")
        disk.fail(operation, code)
    disk.heal()
    assert any("the next start" in each.getMessage() for each in caplog.records if each.levelno == logging.WARNING)
    async with open_store(store_path, vfs=disk.name) as store:
        assert await texts(store) == ["kept"]


async def test_a_forget_that_the_end_overtakes_is_answered(store_path: Path) -> None:
    """What is at its erasure when the store closes is answered, instead of waiting for a thread that has ended."""
    async with open_store(store_path) as store:
        await record(store, key("w1"))
        erasing = [asyncio.ensure_future(store.finish_erasure()) for _ in range(20)]
        await asyncio.sleep(0)
        await store.close()
        await asyncio.wait_for(asyncio.gather(*erasing), 5)
