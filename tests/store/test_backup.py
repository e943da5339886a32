"""The backup: one sound file as of one moment, whatever is recorded meanwhile; and nothing half done under its name."""

import asyncio
import stat
from pathlib import Path

import pytest

from sidecar.domain.errors import Code, LedgerError
from sidecar.store import backup
from sidecar.store.check import check
from sidecar.store.connection import open_beside
from sidecar.store.progress import Progress, unreported
from tests.support.stores import beside, files_in, key, open_store, record, texts


def _work_keys(path: Path) -> list[str]:
    db = open_beside(path)
    try:
        assert check(db, unreported).sound
        return [found for (found,) in db.execute("SELECT work_key FROM conversation_sessions ORDER BY id")]
    finally:
        db.close()


async def test_a_backup_is_a_store(tmp_path: Path) -> None:
    """A backup opens as a store of its own, with the same turns, readable by its owner alone."""
    target = tmp_path / "backups" / "one.db"
    target.parent.mkdir()
    async with open_store(tmp_path / "store.db") as store:
        for number in range(3):
            await record(store, key(f"w{number}"), f"t{number}")
        report = await store.backup(target, unreported)
    assert (report.path, report.rows, report.entries) == (str(target), 3, 3)
    assert report.size_bytes == target.stat().st_size
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert files_in(target.parent) == {"one.db"}
    async with open_store(target) as again:
        assert await texts(again) == ["t0", "t1", "t2"]


async def test_under_load_it_holds_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While turns are recorded without end the backup ends, and has every turn up to some moment and none after it."""
    monkeypatch.setattr(backup, "_STEP_PAGES", 5)
    async with open_store(tmp_path / "store.db") as store:
        for number in range(300):
            await record(store, key(f"w{number}", f"c{number % 7}"), "x" * 3_000)
        steps: list[Progress] = []
        backing_up = asyncio.create_task(store.backup(tmp_path / "b.db", steps.append))
        recorded = 300
        while not backing_up.done():
            await record(store, key(f"w{recorded}", f"c{recorded % 7}"), "x" * 3_000)
            recorded += 1
        await backing_up
    assert recorded > 320
    found = _work_keys(tmp_path / "b.db")
    assert found == [f"w{number}" for number in range(len(found))]
    assert 300 <= len(found) <= recorded
    pages = [step for step in steps if step.phase == "pages"]
    assert pages[-1].done == pages[-1].total


async def test_it_replaces_nothing(tmp_path: Path) -> None:
    """A file that is there is refused by name, and stays as it is."""
    (tmp_path / "b.db").write_text("precious")
    async with open_store(tmp_path / "store.db") as store:
        with pytest.raises(LedgerError, match="exists, and no backup replaces one"):
            await store.backup(tmp_path / "b.db", unreported)
    assert (tmp_path / "b.db").read_text() == "precious"


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Where the target cannot be written, the error says which and why, and nothing is left."""
    async with open_store(tmp_path / "store.db") as store:
        with pytest.raises(LedgerError, match=r"nowhere/b[.]db cannot be written: No such file"):
            await store.backup(tmp_path / "nowhere" / "b.db", unreported)
        assert await texts(store) == []


async def test_a_disk_without_room_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup that would not fit is refused before the first page, with both figures."""
    monkeypatch.setattr(backup, "_MARGIN_BYTES", 1 << 60)
    async with open_store(tmp_path / "store.db") as store:
        with pytest.raises(LedgerError, match="bytes free, and the backup needs") as refused:
            await store.backup(tmp_path / "b.db", unreported)
    assert refused.value.code is Code.STORE_FULL
    assert not (tmp_path / "b.db").exists()


async def test_a_damaged_store_gives_no_backup(tmp_path: Path) -> None:
    """A copy that does not pass the check gets no name, and the partial file is gone."""
    async with open_store(tmp_path / "store.db") as store:
        await record(store, key("w"))
        with beside(tmp_path / "store.db") as db:
            db.execute("UPDATE conversation_sessions SET entry = x'00'")
        with pytest.raises(LedgerError, match="does not pass the check"):
            await store.backup(tmp_path / "b.db", unreported)
        assert not [name for name in files_in(tmp_path) if "b.db" in name]


async def test_a_cancelled_backup_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives up in the middle leaves no file, and a store that goes on."""
    monkeypatch.setattr(backup, "_STEP_PAGES", 1)
    begun = asyncio.Event()
    async with open_store(tmp_path / "store.db") as store:
        for number in range(100):
            await record(store, key(f"w{number}"), "x" * 3_000)
        backing_up = asyncio.create_task(store.backup(tmp_path / "b.db", lambda _: begun.set()))
        await begun.wait()
        backing_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await backing_up
        assert not [name for name in files_in(tmp_path) if "b.db" in name]
        await record(store, key("after"))


async def test_a_store_that_closes_ends_the_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closing store does not wait for a backup: it fails with a reason, and leaves nothing."""
    monkeypatch.setattr(backup, "_STEP_PAGES", 1)
    begun = asyncio.Event()
    async with open_store(tmp_path / "store.db") as store:
        for number in range(100):
            await record(store, key(f"w{number}"), "x" * 3_000)
        backing_up = asyncio.create_task(store.backup(tmp_path / "b.db", lambda _: begun.set()))
        await begun.wait()
    with pytest.raises(LedgerError) as refused:
        await backing_up
    assert refused.value.code is Code.STORE_UNAVAILABLE
    assert not [name for name in files_in(tmp_path) if "b.db" in name]
