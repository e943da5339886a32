"""The restore: a verified backup takes the store's place, without what was forgotten since. Nobody may own the store.

What was forgotten is known by the store that is replaced. Its digests are carried over, and rows that match one go
before anything is replaced. A crash at any point leaves the old store or the new one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import apsw

from sidecar.domain.errors import Code, LedgerError
from sidecar.store.backup import sync
from sidecar.store.check import check
from sidecar.store.connection import open_beside, prepare_to_write
from sidecar.store.errors import translated_unseen
from sidecar.store.forgotten import forget_again
from sidecar.store.migrate import migrate, missing, shipped
from sidecar.store.progress import Progress, Report
from sidecar.store.remnants import WithoutRemnants

_PAGES: Final = 1_000

#: What SQLite plays into the file that it finds it beside.
_LOGS: Final = ("-wal", "-journal")


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What stands now: rows and kept entries, and how many turns went once more since they had been forgotten.

    `aside` is where the replaced store is, or the log that was left of it; empty where there was neither.
    """

    rows: int
    entries: int
    forgotten_again: int
    aside: str


class ForgottenUnknown(LedgerError):
    """The store that would be replaced cannot say what was forgotten since the backup."""


def restore(backup: Path, store: Path, now: int, report: Report, *, forget_unknown: bool = False) -> RestoreReport:
    """Put the backup in the store's place. The caller holds the store's lock.

    With `forget_unknown` also where the store that is replaced cannot say what was forgotten. `now` is seconds since
    1970, UTC. Raises `LedgerError` and leaves everything as it was.
    """
    if store.exists() and not store.is_file():
        raise LedgerError(Code.INVALID, f"{store} is no file, and is not replaced; name the store's file")
    fresh = store.with_name(f".{store.name}.restoring")
    try:
        _remove(fresh)  # what a restore that was killed has left; nobody else is at it, since the lock is held
        with translated_unseen():
            _copy(backup, fresh, report)
            digests = _forgotten(store, forget_unknown=forget_unknown)
            again = _prepare(fresh, digests, now, report)
            found = _verify(fresh, report)
        sync(fresh)
        aside = _swap(fresh, store)
    except OSError as error:
        raise LedgerError(Code.STORE_UNAVAILABLE, f"{store.parent} cannot be written: {error.strerror}") from error
    finally:
        _remove(fresh)
    return RestoreReport(found[0], found[1], again, aside)


def _copy(backup: Path, fresh: Path, report: Report) -> None:
    """Through SQLite, so that a backup with a log beside it is taken whole. Refuses what is no sound store of ours."""
    if not backup.is_file():
        raise LedgerError(Code.STORE_UNAVAILABLE, f"{backup} is no file; name a backup")
    source = open_beside(backup)
    try:
        found = check(source, report)
        if not found.sound:
            raise LedgerError(Code.STORE_CORRUPT, f"{backup} does not pass the check, and was not restored")
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        with _connected(fresh) as target, target.backup("main", source, "main") as copying:
            while not copying.step(_PAGES):
                report(Progress("pages", copying.page_count - copying.remaining, copying.page_count))
    finally:
        source.close()


def _forgotten(store: Path, *, forget_unknown: bool) -> list[tuple[bytes, int]]:
    """What the store that is replaced knows as forgotten. A store that is not there forgot nothing that it knew of."""
    if forget_unknown:
        return []
    try:
        if not store.exists():
            raise LedgerError(Code.STORE_UNAVAILABLE, "it is not there")
        db = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READWRITE)  # its end moves the log into the file
        try:
            with translated_unseen():
                if lacking := missing(db, shipped()):
                    raise LedgerError(Code.STORE_CORRUPT, f"it lacks migration {lacking[0].number}")
                rows: list[tuple[Any, ...]] = db.execute("SELECT digest, forgotten_at FROM forgotten_turns").fetchall()
                return [(digest, at) for digest, at in rows]
        finally:
            db.close()
    except LedgerError as error:
        raise ForgottenUnknown(
            error.code,
            f"the store that would be replaced cannot say what was forgotten since the backup ({error.message});"
            " turns that somebody had erased would come back. Restore all the same with --forget-unknown",
        ) from error


def _prepare(fresh: Path, digests: list[tuple[bytes, int]], now: int, report: Report) -> int:
    """Bring the copy up to this program's schema, and forget again what was forgotten. Answers how many turns went."""
    with _connected(fresh) as db:
        prepare_to_write(db)
        migrate(db, missing(db, shipped()), now)
        again = forget_again(db, digests)
        report(Progress("forgotten again", again, again))
        db.pragma("journal_mode", "delete")  # one file, to be renamed alone
        return again


@contextmanager
def _connected(fresh: Path) -> Iterator[apsw.Connection]:
    """A connection that leaves no remnants in the file, not even those that the backup has."""
    vfs = WithoutRemnants(None)
    try:
        db = apsw.Connection(str(fresh), vfs=vfs.vfs_name, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            yield db
        finally:
            db.close()
    finally:
        vfs.unregister()


def _verify(fresh: Path, report: Report) -> tuple[int, int]:
    db = open_beside(fresh)
    try:
        found = check(db, report)
    finally:
        db.close()
    if not found.sound:
        raise LedgerError(Code.STORE_CORRUPT, "the restored copy does not pass the check; nothing was replaced")
    return found.rows, found.entries


def _swap(fresh: Path, store: Path) -> str:
    """The new file takes the store's name in one step; what was there keeps another.

    SQLite would play a log that is left beside the new file into it, whosever log that is, and so would damage it and
    bring erased turns back. A store that could be opened has none by now; that of a damaged one, or of one whose file
    is gone, steps aside first, which costs nothing that could still be read.
    """
    aside = _free_name(store)
    kept = []
    if store.exists():
        os.link(store, aside)
        kept.append(aside)
    for suffix in _LOGS:
        log = store.with_name(store.name + suffix)
        if log.exists():
            log.rename(aside + suffix)
            kept.append(aside + suffix)
    store.with_name(store.name + "-shm").unlink(missing_ok=True)
    sync(store.parent)
    fresh.replace(store)
    sync(store.parent)
    return kept[0] if kept else ""


def _free_name(store: Path) -> str:
    number = 1
    while any(Path(f"{store}.replaced-{number}{suffix}").exists() for suffix in ("", *_LOGS)):
        number += 1
    return f"{store}.replaced-{number}"


def _remove(fresh: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
