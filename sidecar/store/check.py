"""The check of a store: SQLite's own, then every row against its checksum, then what must hold between rows."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import apsw

from sidecar.store.errors import translated
from sidecar.store.migrate import require_store
from sidecar.store.progress import Progress, Report
from sidecar.store.row import COLUMNS, conversation_of, row_of

#: Rows in one read. Each is a snapshot of its own, so that no check pins the log for long.
_ROWS: Final = 500

#: Row ids named of each kind of damage; the rest is counted.
_NAMED: Final = 10

#: Lines of SQLite's own findings.
_FINDINGS: Final = 20

#: The table's own rules, which SQLite does not look at where it may only read; and one more: each row of the store has
#: taken one id, and at most one ordinal.
_LAWFUL: Final = """coalesce(trimmed IN (0, 1) AND (entry IS NULL) = trimmed AND (checksum IS NULL) = trimmed
  AND agent_handle <> '' AND conversation_key <> '' AND entry_id <> '' AND version > 0
  AND ordinal BETWEEN 1 AND id, 0)"""

_ROWS_AFTER: Final = f"""
SELECT CAST(coalesce(agent_handle, '') AS BLOB), CAST(coalesce(conversation_key, '') AS BLOB), {_LAWFUL}, trimmed,
  {COLUMNS}
FROM conversation_sessions WHERE id > ? ORDER BY id LIMIT ?
"""

#: Where a row's id is among these columns.
_ID: Final = 4

_TWICE: Final = """
SELECT count(*) FROM (SELECT 1 FROM conversation_sessions
  GROUP BY agent_handle, conversation_key, ordinal HAVING count(*) > 1)
"""


@dataclass(slots=True)
class CheckReport:
    """What a check found. Row ids name damaged rows, `_NAMED` at most; they say nothing of what was in them.

    Unreadable is also a row whose other columns hold what no row may hold.
    """

    rows: int = 0
    entries: int = 0
    unreadable: int = 0
    unreadable_ids: list[int] = field(default_factory=list)
    ordinals_twice: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.unreadable or self.ordinals_twice or self.findings)


def check(db: apsw.Connection, report: Report) -> CheckReport:
    """Check all of the store that `db` reads. Changes nothing. Damage is in the report, never raised.

    Raises `LedgerError`: STORE_NEWER for a store of a later program, STORE_CORRUPT for what is no store of ours,
    and whatever keeps it from being read at all.
    """
    found = CheckReport()
    with translated():
        require_store(db)
        found.findings += _integrity(db, report)
        try:
            _rows(db, found, report)
            found.ordinals_twice = _twice(db)
        except apsw.CorruptError:
            found.findings.append("not all rows could be reached")
    return found


def _twice(db: apsw.Connection) -> int:
    """How many places in a conversation two rows claim."""
    count: int = db.execute(_TWICE).get
    return count


def _integrity(db: apsw.Connection, report: Report) -> Iterator[str]:
    """SQLite's own check of pages, indexes and constraints. Its lines name pages and indexes, or no more than that."""
    report(Progress("pages and indexes", 0, 0))
    try:
        lines = [str(line) for (line,) in db.execute(f"PRAGMA integrity_check({_FINDINGS})")]
    except apsw.CorruptError:
        lines = ["the file's pages cannot be walked"]
    return (line for line in lines if line != "ok")


def _rows(db: apsw.Connection, found: CheckReport, report: Report) -> None:
    total: int = db.execute("SELECT coalesce(max(id), 0) FROM conversation_sessions").get
    last = 0
    while batch := _rows_after(db, last):
        for columns in batch:
            _row(columns, found)
        reached: int = batch[-1][_ID]
        if reached <= last:  # pages that lead back to themselves would be walked for ever
            found.findings.append("rows come out of their order")
            return
        last = reached
        report(Progress("rows", last, total))


def _rows_after(db: apsw.Connection, last: int) -> list[tuple[Any, ...]]:
    return db.execute(_ROWS_AFTER, (last, _ROWS)).fetchall()


def _row(columns: tuple[Any, ...], found: CheckReport) -> None:
    seat, key, lawful, trimmed, row_id = columns[: _ID + 1]
    found.rows += 1
    found.entries += not trimmed
    conversation = conversation_of(seat, key)
    readable = conversation is not None and (trimmed or row_of(conversation, columns[_ID:]).recorded() is not None)
    if not (lawful and readable):
        found.unreadable += 1
        if len(found.unreadable_ids) < _NAMED:
            found.unreadable_ids.append(row_id)
