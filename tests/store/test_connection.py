"""The settings that the store's promises rest on are really in force."""

import os
import stat
from pathlib import Path

import apsw
import pytest

from sidecar.store.connection import open_reader, open_writer, prepare_to_write
from tests.support.faulty_disk import FaultyDisk
from tests.support.stores import beside, key, open_store, record


@pytest.mark.usefixtures("store")
async def test_log_is_ahead_and_space_comes_back_in_steps(store_path: Path) -> None:
    """The file itself says WAL and incremental vacuum, whoever opens it."""
    with beside(store_path) as db:
        assert db.pragma("journal_mode") == "wal"
        assert db.pragma("auto_vacuum") == 2


@pytest.mark.usefixtures("store")
async def test_writer_syncs_and_erases(store_path: Path) -> None:
    """The writing connection syncs each commit and overwrites what it deletes."""
    db = open_writer(store_path)
    prepare_to_write(db)
    assert (db.pragma("synchronous"), db.pragma("secure_delete"), db.pragma("journal_mode")) == (2, 1, "wal")
    db.close()


@pytest.mark.usefixtures("store")
async def test_reader_cannot_write(store_path: Path) -> None:
    """The reading connection refuses to write."""
    db = open_reader(store_path)
    with pytest.raises(apsw.ReadOnlyError):
        db.execute("DELETE FROM conversation_sessions")
    db.close()


@pytest.mark.usefixtures("store")
async def test_tables_are_strict(store_path: Path) -> None:
    """No table takes a value of another type than its column's."""
    with beside(store_path) as db:
        loose = db.execute("SELECT name FROM pragma_table_list WHERE schema = 'main' AND strict = 0").fetchall()
        assert {name for (name,) in loose} <= {"sqlite_schema", "sqlite_sequence"}
        assert db.execute("SELECT sql FROM sqlite_schema WHERE name = 'conversation_sessions'").get.count(
            "AUTOINCREMENT"
        )


@pytest.mark.usefixtures("store")
async def test_dedupe_is_a_partial_unique_index(store_path: Path) -> None:
    """The store accepts a second row of one work key only where the key is empty."""
    insert = (
        "INSERT INTO conversation_sessions (agent_handle, conversation_key, work_key, turn_id, entry_id, ordinal,"
        " version, trimmed, rendered_bytes, created_at)"
        " VALUES ('s', 'c', ?, '', ?, 1, 1, 1, 0, 0)"
    )
    with beside(store_path) as db:
        db.execute(insert, ("", "a"))
        db.execute(insert, ("", "b"))
        db.execute(insert, ("w", "c"))
        with pytest.raises(apsw.ConstraintError):
            db.execute(insert, ("w", "d"))


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o117])
async def test_files_are_the_owners_alone(store_path: Path, mask: int) -> None:
    """Store, log, index and reserve are readable by their owner alone, whatever the umask."""
    before = os.umask(mask)
    try:
        async with open_store(store_path) as store:
            await record(store, key("a"))
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in store_path.parent.iterdir()}
    finally:
        os.umask(before)
    assert {"store.db", "store.db-wal", "store.db-shm"} <= modes.keys()
    assert set(modes.values()) == {0o600}


async def test_missing_folders_are_made_private(tmp_path: Path) -> None:
    """The folders above a store are made, for its owner alone."""
    path = tmp_path / "made" / "here" / "store.db"
    async with open_store(path):
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_commit_waits_for_the_logs_sync(store_path: Path, disk: FaultyDisk) -> None:
    """The disk is asked to sync the log between a row's last write and its answer."""
    happened: list[str] = []
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("first"))
        disk.watcher = lambda operation, path: happened.append(operation) if path.endswith("-wal") else None
        await record(store, key("second"))
        happened.append("answered")
        disk.heal()
    writes = [place for place, each in enumerate(happened) if each == "write"]
    assert writes
    assert "sync" in happened[max(writes) : happened.index("answered")]
