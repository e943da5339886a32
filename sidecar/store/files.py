"""What can be done with a store's file that nobody owns, or with a backup, without changing it."""

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TypeVar

import apsw

from sidecar.domain.errors import Code, LedgerError
from sidecar.store.backup import BackupReport, Copy
from sidecar.store.check import CheckReport, check
from sidecar.store.connection import open_beside
from sidecar.store.errors import translated_unseen
from sidecar.store.migrate import missing, require_store, shipped
from sidecar.store.progress import Report
from sidecar.store.totals import Sizes, Totals, read_sizes, read_totals

T = TypeVar("T")


def check_file(path: Path, report: Report) -> CheckReport:
    """Check the store in this file. Raises `LedgerError` where there is none that this program can read."""
    return _beside(path, lambda db: check(db, report))


def count_file(path: Path) -> tuple[Totals, Sizes]:
    """Count what is in it, and what it takes."""

    def count(db: apsw.Connection) -> tuple[Totals, Sizes]:
        if missing(db, shipped()):
            raise LedgerError(
                Code.STORE_UNAVAILABLE, "the store is of an earlier version; it is counted once a sidecar has opened it"
            )
        return read_totals(db), read_sizes(path)

    return _beside(path, count)


def back_up_file(path: Path, to: Path, report: Report) -> BackupReport:
    """Copy it, as it stands."""

    def copy_to(db: apsw.Connection) -> BackupReport:
        copy = Copy(db, to, Event())
        try:
            while not copy.complete:
                report(copy.step())
            copy.stop_copying()
            return copy.publish(report)
        finally:
            copy.discard()

    return _beside(path, copy_to)


def require_file(path: Path) -> None:
    """Raises `LedgerError` where the file holds no store that this program can read."""
    _beside(path, lambda _: None)


def _beside(path: Path, work: Callable[[apsw.Connection], T]) -> T:
    with translated_unseen():
        db = open_beside(path)
        try:
            require_store(db)
            return work(db)
        finally:
            db.close()
