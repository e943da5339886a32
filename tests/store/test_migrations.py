"""Bringing a store to the program's schema, all of a step or none of it."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import apsw
import pytest

from sidecar.domain.errors import Code, LedgerError
from sidecar.store.connection import APPLICATION_ID, open_writer, prepare_to_write
from sidecar.store.database import Database
from sidecar.store.migrate import Migration, migrate, missing, shipped
from tests.support.faulty_disk import FaultyDisk
from tests.support.stores import beside, key, open_store, record, texts

ONE = Migration(1, "one", "CREATE TABLE one (x INTEGER) STRICT;")
TWO = Migration(2, "two", "CREATE TABLE two (x INTEGER) STRICT; INSERT INTO two VALUES (1);")
BROKEN = Migration(2, "broken", "CREATE TABLE two (x INTEGER) STRICT; INSERT INTO no_such_table VALUES (1);")


def _tables(db: apsw.Connection) -> set[str]:
    return {
        name
        for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    }


def _opened(path: Path, vfs: str | None = None) -> apsw.Connection:
    db = open_writer(path, vfs)
    prepare_to_write(db)
    return db


def _bring(db: apsw.Connection, steps: list[Migration], now: int) -> None:
    migrate(db, missing(db, steps), now)


def _ledger(db: apsw.Connection) -> list[tuple[Any, ...]]:
    return db.execute("SELECT number, name, checksum, applied_at FROM schema_migrations ORDER BY number").fetchall()


def test_each_step_leaves_its_row(store_path: Path) -> None:
    """A migrated store says which steps it was built from, with their digests and when."""
    db = _opened(store_path)
    _bring(db, [ONE, TWO], 77)
    digests = [hashlib.sha256(step.sql.encode()).hexdigest() for step in (ONE, TWO)]
    assert _ledger(db) == [(1, "one", digests[0], 77), (2, "two", digests[1], 77)]
    assert _tables(db) == {"one", "two", "schema_migrations"}
    db.close()


def test_steps_run_once(store_path: Path) -> None:
    """Opening again runs only what is new."""
    db = _opened(store_path)
    _bring(db, [ONE], 1)
    _bring(db, [ONE, TWO], 2)
    _bring(db, [ONE, TWO], 3)
    assert [row[3] for row in _ledger(db)] == [1, 2]
    assert db.execute("SELECT count(*) FROM two").get == 1
    db.close()


def test_step_that_fails_leaves_nothing(store_path: Path) -> None:
    """A step that fails in its middle leaves neither tables nor a row, and what was there stays."""
    db = _opened(store_path)
    _bring(db, [ONE], 1)
    with pytest.raises(apsw.Error):
        _bring(db, [ONE, BROKEN], 2)
    assert not db.in_transaction
    assert _tables(db) == {"one", "schema_migrations"}
    _bring(db, [ONE, TWO], 3)
    assert [row[3] for row in _ledger(db)] == [1, 3]
    db.close()


def test_disk_that_fails_at_the_commit_leaves_nothing(store_path: Path, disk: FaultyDisk) -> None:
    """A step whose commit does not reach the disk leaves neither its tables nor its row."""
    db = _opened(store_path, disk.name)
    _bring(db, [ONE], 1)
    disk.fail("sync", apsw.SQLITE_IOERR_FSYNC, ending="-wal", times=1)
    with pytest.raises(apsw.IOError):
        _bring(db, [ONE, TWO], 2)
    disk.heal()
    assert _tables(db) == {"one", "schema_migrations"}
    assert [row[0] for row in _ledger(db)] == [1]
    db.close()


async def test_opening_goes_on_once_the_disk_works(store_path: Path, disk: FaultyDisk) -> None:
    """A store whose first opening met a bad disk opens whole as soon as the disk is well."""
    disk.fail("sync", apsw.SQLITE_IOERR_FSYNC, ending="-wal", times=1)
    with pytest.raises(LedgerError) as raised:
        Database(store_path, now=1, vfs=disk.name)
    assert raised.value.code is Code.STORE_IO
    disk.heal()
    async with open_store(store_path, vfs=disk.name) as store:
        await record(store, key("a"), "whole")
        assert await texts(store) == ["whole"]


def test_edited_step_is_refused(store_path: Path) -> None:
    """A store built from another text of an old step is not used, nor changed."""
    Database(store_path, now=1).close()
    with beside(store_path) as db:
        db.execute("UPDATE schema_migrations SET checksum = 'edited' WHERE number = 1")
        before = _ledger(db)
    with pytest.raises(LedgerError) as raised:
        Database(store_path, now=2)
    assert raised.value.code is Code.STORE_CORRUPT
    with beside(store_path) as db:
        assert _ledger(db) == before


def test_newer_store_is_refused(store_path: Path) -> None:
    """A store that a later program has migrated is refused by name and left as it is."""
    Database(store_path, now=1).close()
    with beside(store_path) as db:
        db.execute("INSERT INTO schema_migrations VALUES (999, 'later', 'x', 1)")
        before = _ledger(db)
    with pytest.raises(LedgerError, match="999") as raised:
        Database(store_path, now=2)
    assert raised.value.code is Code.STORE_NEWER
    with beside(store_path) as db:
        assert _ledger(db) == before


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("vacuum", ["none", "full"])
def test_foreign_database_is_left_untouched(store_path: Path, journal: str, vacuum: str) -> None:
    """Another program's database is refused, and not one byte of it changes."""
    with beside(store_path) as db:
        db.pragma("auto_vacuum", vacuum)
        db.pragma("journal_mode", journal)
        db.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    before = store_path.read_bytes()
    with pytest.raises(LedgerError) as raised:
        Database(store_path, now=1)
    assert raised.value.code is Code.STORE_CORRUPT
    assert store_path.read_bytes() == before


def test_shipped_steps_are_numbered_without_a_gap() -> None:
    """The program's own steps count from 1, so that a missing file is noticed."""
    steps = shipped()
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))


def test_file_is_marked_as_ours(store_path: Path) -> None:
    """A store carries the application id that tells it from other programs' databases."""
    Database(store_path, now=1).close()
    with beside(store_path) as db:
        assert db.pragma("application_id") == APPLICATION_ID


async def test_a_damaged_schema_is_refused(store_path: Path) -> None:
    """A store whose index was made another is refused as damaged, before a statement fails on it or hides rows."""
    async with open_store(store_path) as store:
        await record(store, key("a"))
    with beside(store_path) as db:
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        db.pragma("writable_schema", True)
        db.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'ordinal', 'version') WHERE name LIKE '%by_conversation'"
        )
    with pytest.raises(LedgerError) as raised:
        async with open_store(store_path):
            pass
    assert raised.value.code is Code.STORE_CORRUPT


async def test_an_emptied_store_is_no_new_one(store_path: Path) -> None:
    """A file that lost its content is refused; one that a first start left empty is opened."""
    await asyncio.to_thread(store_path.touch)
    async with open_store(store_path) as store:
        await record(store, key("a"))
    await asyncio.to_thread(store_path.write_bytes, b"")
    with pytest.raises(LedgerError, match="remove the file") as raised:
        async with open_store(store_path):
            pass
    assert raised.value.code is Code.STORE_CORRUPT
    await asyncio.to_thread(store_path.unlink)
    async with open_store(store_path) as store:
        assert await texts(store) == []
