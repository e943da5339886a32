"""The read of History: a conversation's newest kept entries, and what is known of the others."""

from dataclasses import dataclass
from typing import Any, Final

import apsw

from sidecar.domain.block import Kept
from sidecar.domain.eligibility import Conversation, TurnKey
from sidecar.domain.entry import Entry
from sidecar.domain.errors import Code, LedgerError
from sidecar.store.codec import Identity, Unreadable, decode
from sidecar.store.transaction import Kind, transaction

_NEWEST: Final = """
SELECT ordinal, CAST(work_key AS BLOB), CAST(entry_id AS BLOB), version, entry, checksum FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND trimmed = 0 ORDER BY ordinal DESC LIMIT ?
"""

_HIGHEST_TRIMMED: Final = """
SELECT ordinal FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND trimmed = 1 ORDER BY ordinal DESC LIMIT 1
"""

_RECORDED: Final = """
SELECT 1 FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND work_key = ? AND work_key <> ''
"""

#: The columns of `_NEWEST`, texts as bytes: one that is no text any more costs its row alone.
_Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What one read of a conversation found. `recorded` says whether the work key that was asked for is there."""

    kept: Kept
    recorded: bool


def read_history(db: apsw.Connection, key: TurnKey, max_entries: int) -> Reading:
    """The newest `max_entries` kept entries, oldest first, in one snapshot of the store.

    Raises `LedgerError` STORE_CORRUPT if there are entries and none can be read: an empty history would be a lie.
    """
    conversation = key.conversation
    keys = (conversation.agent_handle, conversation.conversation_key)
    with transaction(db, Kind.DEFERRED):
        rows: list[_Row] = db.execute(_NEWEST, (*keys, max_entries)).fetchall()
        trimmed = 0 if rows else _ordinal(db, keys)
        recorded = bool(key.work_key) and db.execute(_RECORDED, (*keys, key.work_key)).get is not None
    highest: int = rows[0][0] if rows else trimmed
    entries = [entry for row in reversed(rows) if (entry := _readable(conversation, row)) is not None]
    if rows and not entries:
        raise LedgerError(Code.STORE_CORRUPT, "none of this conversation's entries can be read")
    return Reading(Kept(entries, highest - len(rows), len(rows) - len(entries)), recorded)


def _readable(conversation: Conversation, row: _Row) -> Entry | None:
    """One damaged row costs that row."""
    _, work_key, entry_id, version, data, expected = row
    try:
        key = TurnKey(conversation, work_key.decode())
        return decode(Identity(key, entry_id.decode(), version), data, expected)
    except (Unreadable, UnicodeDecodeError):
        return None


def _ordinal(db: apsw.Connection, keys: tuple[str, str]) -> int:
    highest: int | None = db.execute(_HIGHEST_TRIMMED, keys).get
    return highest or 0
