"""The read of History: a conversation's newest kept entries, and what is known of the others."""

from dataclasses import dataclass
from typing import Any, Final

import apsw

from sidecar.domain.block import Kept
from sidecar.domain.eligibility import TurnKey
from sidecar.domain.errors import Code, LedgerError
from sidecar.store.row import COLUMNS, find_turn, row_of
from sidecar.store.transaction import Kind, transaction

_NEWEST: Final = f"""
SELECT ordinal, {COLUMNS} FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND trimmed = 0 ORDER BY ordinal DESC LIMIT ?
"""

_HIGHEST_TRIMMED: Final = """
SELECT ordinal FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND trimmed = 1 ORDER BY ordinal DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one read of a conversation found. `already_recorded` says whether the turn that was asked for is there."""

    kept: Kept
    already_recorded: bool


def read_history(db: apsw.Connection, key: TurnKey, max_entries: int) -> Reading:
    """The newest `max_entries` kept entries, oldest first, in one snapshot of the store. A damaged row costs that row.

    Raises `LedgerError` STORE_CORRUPT if there are entries and none can be read: an empty history would be a lie.
    """
    conversation = key.conversation
    keys = (conversation.agent_handle, conversation.conversation_key)
    with transaction(db, Kind.DEFERRED):
        found: list[tuple[Any, ...]] = db.execute(_NEWEST, (*keys, max_entries)).fetchall()
        highest: int = found[0][0] if found else _highest_trimmed(db, keys)
        already_recorded = bool(key.work_key) and find_turn(db, key) is not None
    rows = [row_of(conversation, columns) for _, *columns in reversed(found)]
    recorded = [entry for row in rows if (entry := row.recorded()) is not None]
    if rows and not recorded:
        raise LedgerError(Code.STORE_CORRUPT, "none of this conversation's entries can be read")
    return Reading(Kept(recorded, highest - len(rows), len(rows) - len(recorded)), already_recorded)


def _highest_trimmed(db: apsw.Connection, keys: tuple[str, str]) -> int:
    highest: int | None = db.execute(_HIGHEST_TRIMMED, keys).get
    return highest or 0
