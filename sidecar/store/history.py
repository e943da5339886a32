"""The read of History: a conversation's newest kept entries, and what is known of the others."""

from dataclasses import dataclass
from typing import Any, Final

import apsw

from sidecar.domain.block import Kept
from sidecar.domain.eligibility import TurnKey
from sidecar.domain.errors import Code, LedgerError
from sidecar.store.errors import damaged
from sidecar.store.row import COLUMNS, find_turn, row_of
from sidecar.store.transaction import Kind, transaction

_NEWEST: Final = f"""
SELECT CAST(ordinal AS INTEGER), coalesce(ordinal BETWEEN 1 AND id, 0), {COLUMNS} FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND trimmed = 0 ORDER BY ordinal DESC LIMIT ?
"""

_HIGHEST_TRIMMED: Final = """
SELECT CAST(ordinal AS INTEGER) FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND trimmed = 1 AND ordinal BETWEEN 1 AND id
ORDER BY ordinal DESC LIMIT 1
"""

#: By the other index on these keys.
_ANY: Final = """
SELECT 1 FROM conversation_sessions INDEXED BY conversation_sessions_by_work_key
WHERE agent_handle = ? AND conversation_key = ? AND work_key <> '' LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one read of a conversation found. `already_recorded` says whether the turn that was asked for is there."""

    kept: Kept
    already_recorded: bool


def read_history(db: apsw.Connection, key: TurnKey, max_entries: int) -> Reading:
    """The newest `max_entries` kept entries, oldest first, in one snapshot of the store. A damaged row costs that row.

    A row whose ordinal is above its id is damaged: each row of the store has taken one id, and one ordinal at most.

    Raises `LedgerError` STORE_CORRUPT if there are entries and none can be read, or none is found where another index
    knows of one: an empty history would be a lie.
    """
    conversation = key.conversation
    keys = (conversation.agent_handle, conversation.conversation_key)
    with transaction(db, Kind.DEFERRED):
        found: list[tuple[Any, ...]] = db.execute(_NEWEST, (*keys, max_entries)).fetchall()
        highest = max((ordinal for ordinal, placed, *_ in found if placed), default=0) or _highest_trimmed(db, keys)
        if not (found or highest) and db.execute(_ANY, keys).get:
            raise damaged("an index lacks rows")
        already_recorded = bool(key.work_key) and find_turn(db, key) is not None
    rows = [row_of(conversation, columns) for _, placed, *columns in reversed(found) if placed]
    recorded = [entry for row in rows if (entry := row.recorded()) is not None]
    if found and not recorded:
        raise LedgerError(Code.STORE_CORRUPT, "none of this conversation's entries can be read")
    return Reading(Kept(recorded, max(highest - len(found), 0), len(found) - len(recorded)), already_recorded)


def _highest_trimmed(db: apsw.Connection, keys: tuple[str, str]) -> int:
    highest: int | None = db.execute(_HIGHEST_TRIMMED, keys).get
    return highest or 0
