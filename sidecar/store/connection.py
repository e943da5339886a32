"""Opening the store: each setting is one function, so that its reason has a place."""

import os
from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw

#: How long a statement waits for a lock that another program holds on the file, in milliseconds. Our own threads never
#: wait for each other: there is one writer, and WAL readers take no lock that it needs.
BUSY_TIMEOUT_MS: Final = 2_000

#: The log keeps at most this size once it was moved into the file, in bytes: a burst leaves no file of gigabytes.
_LOG_BYTES: Final = 16 * 1024 * 1024

#: "TLDG": marks the file as ours, so that another program's database is never written to.
APPLICATION_ID: Final = 0x544C4447

_CACHE_KIB: Final = 8 * 1024

#: How long the end of a checkpoint waits for readers, in milliseconds. Appends wait behind it.
_CHECKPOINT_WAIT_MS: Final = 4


def open_writer(path: Path, vfs: str | None = None) -> apsw.Connection:
    """The connection that will write. Creates the file, readable by its owner alone, and changes nothing of one that is
    there.

    Raises `apsw.Error`, and `OSError` if the file cannot be created.
    """
    _create_private(path)
    db = apsw.Connection(str(path), vfs=vfs)
    _wait_for_foreign_locks(db)
    _leave_the_log(db)
    return db


def prepare_to_write(db: apsw.Connection) -> None:
    """Put the settings of a writer in force, once the file is known to be ours. Raises `apsw.Error`."""
    _give_space_back_in_steps(db)
    _log_ahead(db)
    _sync_each_commit(db)
    _erase_what_is_deleted(db)
    _bound_the_cache(db)
    _bound_the_log(db)


def open_reader(path: Path, vfs: str | None = None) -> apsw.Connection:
    """A connection that only reads, of a store that a writer has opened. Raises `apsw.Error`."""
    db = apsw.Connection(str(path), vfs=vfs, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        _wait_for_foreign_locks(db)
        _leave_the_log(db)
        _bound_the_cache(db)
        db.pragma("query_only", True)
    except apsw.Error:
        db.close()
        raise
    return db


def open_mover(path: Path, vfs: str) -> apsw.Connection:
    """A connection that moves the log of a store that a writer has opened. Raises `apsw.Error`."""
    db = apsw.Connection(str(path), vfs=vfs, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.set_busy_timeout(_CHECKPOINT_WAIT_MS)
        db.execute("SELECT 1 FROM schema_migrations").fetchall()  # one that has read nothing knows of no log
    except apsw.Error:
        db.close()
        raise
    return db


def open_beside(path: Path) -> apsw.Connection:
    """A connection that reads a store or a backup which nobody owns, and leaves no file beside it that was not there.

    With a log beside it the file is read through that, else as a file that nobody changes. Raises `apsw.Error`.
    """
    path = path.resolve()  # the log is beside the file, not beside a link to it
    log = path.with_name(path.name + "-wal")
    unchanged = "" if log.exists() and log.stat().st_size else "&immutable=1"
    uri = f"file:{quote(os.fsencode(path))}?mode=ro{unchanged}"
    db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    _wait_for_foreign_locks(db)
    return db


def _create_private(path: Path) -> None:
    """SQLite gives its log and index files the mode of the database file.

    Only where there is no file yet: to open and close a live one would drop the locks that SQLite holds on it.
    """
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _wait_for_foreign_locks(db: apsw.Connection) -> None:
    db.set_busy_timeout(BUSY_TIMEOUT_MS)


def _leave_the_log(db: apsw.Connection) -> None:
    """Moving it is another connection's, which no commit waits for and which leaves no remnants (`remnants.py`)."""
    db.pragma("wal_autocheckpoint", 0)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def _give_space_back_in_steps(db: apsw.Connection) -> None:
    """Only takes effect before the first table is made."""
    db.pragma("auto_vacuum", "incremental")


def _log_ahead(db: apsw.Connection) -> None:
    """Readers go on while the writer commits."""
    if db.pragma("journal_mode", "wal") != "wal":
        raise apsw.CantOpenError("the file system of the store cannot hold a write-ahead log")


def _sync_each_commit(db: apsw.Connection) -> None:
    """An acknowledged turn survives a power loss."""
    db.pragma("synchronous", "full")


def _erase_what_is_deleted(db: apsw.Connection) -> None:
    """Forgotten and trimmed text leaves no copy on free pages. `fast` would leave the overflow of long entries."""
    db.pragma("secure_delete", True)


def _bound_the_cache(db: apsw.Connection) -> None:
    db.pragma("cache_size", -_CACHE_KIB)


def _bound_the_log(db: apsw.Connection) -> None:
    db.pragma("journal_size_limit", _LOG_BYTES)
