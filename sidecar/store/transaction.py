"""A transaction that ends as it should, also where SQLite has ended it already."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import apsw


class Kind(StrEnum):
    """How a transaction begins."""

    #: For reads: one snapshot from the first of them on.
    DEFERRED = "BEGIN"
    #: For writes: one that began as a read would fail at once where another writer is, whatever the timeout.
    IMMEDIATE = "BEGIN IMMEDIATE"


@contextmanager
def transaction(db: apsw.Connection, kind: Kind) -> Iterator[None]:
    """Commit what happens inside, or nothing of it. After a fault SQLite may have rolled back by itself."""
    db.execute(kind)
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def touch(db: apsw.Connection) -> None:
    """Change nothing, by writing a row as it is: its commit is as real as any other."""
    db.execute("UPDATE schema_migrations SET applied_at = applied_at WHERE number = 1")
