"""The transaction of Append: dedupe, ordinal and trim together, or nothing."""

from dataclasses import dataclass
from typing import Any, Final

import apsw

from sidecar.domain.eligibility import Conversation, Disposition, SkipReason, TurnKey
from sidecar.domain.entry import Entry, EntryRef
from sidecar.domain.split import slid_out
from sidecar.store.codec import Identity, Sealed, seal
from sidecar.store.errors import damaged
from sidecar.store.forgotten import is_forgotten
from sidecar.store.row import COLUMNS, Row, change_rows, row_of

#: No ordinal is above its row's id, since each row of the store has taken one. One that is was damaged, and is passed
#: over: no later turn could have a higher one.
_INSERT: Final = """
INSERT INTO conversation_sessions (
  agent_handle, conversation_key, work_key, turn_id, entry_id, ordinal, version, trimmed, rendered_bytes, entry,
  checksum, created_at
)
VALUES (?1, ?2, ?3, ?4, ?5, 1 + max(
    coalesce((SELECT CAST(ordinal AS INTEGER) FROM conversation_sessions
      WHERE agent_handle = ?1 AND conversation_key = ?2 AND trimmed = 0 AND ordinal <= id
      ORDER BY ordinal DESC LIMIT 1), 0),
    coalesce((SELECT CAST(ordinal AS INTEGER) FROM conversation_sessions
      WHERE agent_handle = ?1 AND conversation_key = ?2 AND trimmed = 1 AND ordinal <= id
      ORDER BY ordinal DESC LIMIT 1), 0)
  ), ?6, 0, ?7, ?8, ?9, ?10)
ON CONFLICT DO NOTHING
RETURNING id, ordinal
"""

_EXISTING: Final = """
SELECT id, CAST(coalesce(entry_id, '') AS BLOB), CAST(coalesce(version, 0) AS INTEGER),
  CAST(coalesce(max(ordinal, 0), 0) AS INTEGER)
FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND work_key = ? AND work_key <> ''
"""

_OLDEST_BEYOND: Final = """
SELECT ordinal FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND trimmed = 0 ORDER BY ordinal DESC LIMIT 1 OFFSET ?
"""

_TRIM: Final = """
UPDATE conversation_sessions
SET trimmed = 1, rendered_bytes = 0, entry = NULL, checksum = NULL, turn_id = ''
WHERE agent_handle = ? AND conversation_key = ? AND trimmed = 0 AND ordinal <= ?
"""

_SIZES: Final = """
SELECT ordinal, CAST(coalesce(rendered_bytes, 0) AS INTEGER) FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND trimmed = 0 ORDER BY ordinal
"""

_BETWEEN: Final = f"""
SELECT {COLUMNS} FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND trimmed = 0 AND ordinal BETWEEN ? AND ?
"""

_FIRST_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class NewRow:
    """A turn to record. `created_at` is seconds since 1970, UTC."""

    key: TurnKey
    turn_id: str
    entry_id: str
    sealed: Sealed
    created_at: int


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of an Append.

    `ref` is None and `ordinal` 0 where it was skipped. `slid_out` holds the rows of the entries that no longer fit a
    block whole since this one came.
    """

    disposition: Disposition
    ref: EntryRef | None = None
    ordinal: int = 0
    skip_reason: SkipReason | None = None
    slid_out: tuple[Row, ...] = ()

    @property
    def entry_id(self) -> str:
        """The entry's id, or empty where it was skipped."""
        return "" if self.ref is None else self.ref.entry_id


def new_row(key: TurnKey, entry: Entry, entry_id: str, created_at: int) -> NewRow:
    """Seal the entry, so that the writer's thread has only SQLite's work to do."""
    sealed = seal(Identity.of(key, entry_id, _FIRST_VERSION), entry)
    return NewRow(key, entry.turn_id, entry_id, sealed, created_at)


def append(db: apsw.Connection, row: NewRow, max_entries: int) -> Appended:
    """Record the turn unless it is there or was forgotten, and trim its conversation to `max_entries` kept entries."""
    if is_forgotten(db, row.key):
        return Appended(Disposition.SKIPPED, skip_reason=SkipReason.FORGOTTEN)
    inserted = _insert(db, row)
    if inserted is None:
        return _existing(db, row)
    row_id, ordinal = inserted
    if ordinal > max_entries:
        trim(db, row.key.conversation, max_entries)
    ref = EntryRef(row_id, row.entry_id, _FIRST_VERSION)
    return Appended(Disposition.RECORDED, ref, ordinal, slid_out=_slid_out(db, row.key.conversation, ordinal))


def _insert(db: apsw.Connection, row: NewRow) -> tuple[int, int] | None:
    """The new row's id and ordinal, or None if its work key is there."""
    conversation = row.key.conversation
    values = (
        conversation.agent_handle,
        conversation.conversation_key,
        row.key.work_key,
        row.turn_id,
        row.entry_id,
        _FIRST_VERSION,
        row.sealed.rendered_bytes,
        row.sealed.data,
        row.sealed.checksum,
        row.created_at,
    )
    inserted: tuple[int, int] | None = db.execute(_INSERT, values).get
    return inserted


def _existing(db: apsw.Connection, row: NewRow) -> Appended:
    """The entry that was first. If that is this very row, an earlier try was committed though it reported failure."""
    conversation = row.key.conversation
    keys = (conversation.agent_handle, conversation.conversation_key, row.key.work_key)
    [(row_id, data, version, ordinal)] = db.execute(_EXISTING, keys)
    entry_id = data.decode()
    disposition = Disposition.RECORDED if entry_id == row.entry_id else Disposition.DUPLICATE
    return Appended(disposition, EntryRef(row_id, entry_id, version), ordinal)


def trim(db: apsw.Connection, conversation: Conversation, max_entries: int) -> int:
    """Take the entry from every kept row but the newest `max_entries`; the keys stay, so that the dedupe does.

    Answers how many entries went.
    """
    keys = (conversation.agent_handle, conversation.conversation_key)
    beyond: int | None = db.execute(_OLDEST_BEYOND, (*keys, max_entries)).get
    if beyond is None:
        return 0
    return change_rows(db, _TRIM, (*keys, beyond))


def _slid_out(db: apsw.Connection, conversation: Conversation, ordinal: int) -> tuple[Row, ...]:
    """The rows that the new one with this ordinal took the room from. Raises STORE_CORRUPT where that is not found."""
    keys = (conversation.agent_handle, conversation.conversation_key)
    found: list[tuple[Any, ...]] = db.execute(_SIZES, keys).fetchall()
    if not any(each == ordinal for each, _ in reversed(found)):
        raise damaged("an index does not hold what was put into it")
    places = slid_out([size for _, size in found])
    if not places:
        return ()
    rows = db.execute(_BETWEEN, (*keys, found[places[0]][0], found[places[-1]][0]))
    return tuple(row_of(conversation, columns) for columns in rows)
