"""The transaction of Append: dedupe, ordinal and trim together, or nothing."""

from dataclasses import dataclass
from typing import Final

import apsw

from sidecar.domain.eligibility import Disposition, SkipReason, TurnKey
from sidecar.domain.entry import Entry
from sidecar.store.codec import Identity, checksum, encode
from sidecar.store.forgotten import is_forgotten

_INSERT: Final = """
INSERT INTO conversation_sessions
  (agent_handle, conversation_key, work_key, turn_id, entry_id, ordinal, version, trimmed, entry, checksum, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, 1 + max(
    coalesce((SELECT ordinal FROM conversation_sessions
      WHERE agent_handle = ?1 AND conversation_key = ?2 AND trimmed = 0 ORDER BY ordinal DESC LIMIT 1), 0),
    coalesce((SELECT ordinal FROM conversation_sessions
      WHERE agent_handle = ?1 AND conversation_key = ?2 AND trimmed = 1 ORDER BY ordinal DESC LIMIT 1), 0)
  ), ?6, 0, ?7, ?8, ?9)
ON CONFLICT DO NOTHING
RETURNING ordinal
"""

_EXISTING: Final = """
SELECT entry_id, ordinal FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND work_key = ? AND work_key <> ''
"""

_OLDEST_BEYOND: Final = """
SELECT ordinal FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND trimmed = 0 ORDER BY ordinal DESC LIMIT 1 OFFSET ?
"""

_TRIM: Final = """
UPDATE conversation_sessions SET trimmed = 1, entry = NULL, checksum = NULL, turn_id = ''
WHERE agent_handle = ? AND conversation_key = ? AND trimmed = 0 AND ordinal <= ?
"""

_FIRST_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class NewRow:
    """A turn to record, its entry in bytes already. `created_at` is seconds since 1970, UTC."""

    key: TurnKey
    turn_id: str
    entry_id: str
    data: bytes
    checksum: bytes
    created_at: int


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of an Append. `entry_id` is empty and `ordinal` 0 where it was skipped."""

    disposition: Disposition
    entry_id: str = ""
    ordinal: int = 0
    skip_reason: SkipReason | None = None


def new_row(key: TurnKey, entry: Entry, entry_id: str, created_at: int) -> NewRow:
    """Encode the entry, so that the writer's thread has only SQLite's work to do."""
    data = encode(entry)
    return NewRow(
        key, entry.turn_id, entry_id, data, checksum(Identity(key, entry_id, _FIRST_VERSION), data), created_at
    )


def append(db: apsw.Connection, row: NewRow, max_entries: int) -> Appended:
    """Record the turn unless it is there or was forgotten, and trim its conversation to `max_entries` kept entries."""
    if is_forgotten(db, row.key):
        return Appended(Disposition.SKIPPED, skip_reason=SkipReason.FORGOTTEN)
    ordinal = _insert(db, row)
    if ordinal is None:
        return _existing(db, row)
    if ordinal > max_entries:
        _trim(db, row.key, max_entries)
    return Appended(Disposition.RECORDED, row.entry_id, ordinal)


def _insert(db: apsw.Connection, row: NewRow) -> int | None:
    conversation = row.key.conversation
    values = (
        conversation.agent_handle,
        conversation.conversation_key,
        row.key.work_key,
        row.turn_id,
        row.entry_id,
        _FIRST_VERSION,
        row.data,
        row.checksum,
        row.created_at,
    )
    ordinal: int | None = db.execute(_INSERT, values).get
    return ordinal


def _existing(db: apsw.Connection, row: NewRow) -> Appended:
    """The entry that was first. If that is this very row, an earlier try was committed though it reported failure."""
    conversation = row.key.conversation
    keys = (conversation.agent_handle, conversation.conversation_key, row.key.work_key)
    [(entry_id, ordinal)] = db.execute(_EXISTING, keys)
    disposition = Disposition.RECORDED if entry_id == row.entry_id else Disposition.DUPLICATE
    return Appended(disposition, entry_id, ordinal)


def _trim(db: apsw.Connection, key: TurnKey, max_entries: int) -> None:
    """Take the entry from every kept row but the newest `max_entries`; the keys stay, so that the dedupe does."""
    keys = (key.conversation.agent_handle, key.conversation.conversation_key)
    beyond: int | None = db.execute(_OLDEST_BEYOND, (*keys, max_entries)).get
    if beyond is not None:
        db.execute(_TRIM, (*keys, beyond))
