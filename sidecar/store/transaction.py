"""A transaction that ends as it should, also where SQLite has ended it already."""

import time
from collections.abc import Callable, Iterator
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
def transaction(db: apsw.Connection, kind: Kind, committed: Callable[[float], None] = lambda _: None) -> Iterator[None]:
    """Commit what happens inside, or nothing of it. After a fault SQLite may have rolled back by itself.

    `committed` is told how many seconds the commit took.
    """
    db.execute(kind)
    try:
        yield
        began = time.monotonic()
        db.execute("COMMIT")
        committed(time.monotonic() - began)
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def touch(db: apsw.Connection) -> None:
    """Write something that means nothing. A row that is written as it is would not do: SQLite leaves out the write."""
    db.pragma("user_version", 1 - db.pragma("user_version"))
