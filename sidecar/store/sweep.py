"""The sweep: what is past retention goes, in transactions so short that no append waits long for one."""

import time
from dataclasses import dataclass
from typing import Any, Final

import apsw

from sidecar.domain.eligibility import Conversation
from sidecar.store.errors import damaged
from sidecar.store.row import conversation_of

#: Seconds that one batch works before it commits, which takes about as long again, and a sync.
_BATCH_S: Final = 0.0005

#: Rows looked up for one batch; a batch of small rows ends by its time well before.
_BATCH_ROWS: Final = 200

#: Conversations looked at in one read of those that hold too many entries.
_CONVERSATIONS: Final = 200

#: Free pages that stay in the file for the appends to come: growing the file again costs more than 1 MiB is worth.
_SPARE_PAGES: Final = 256

#: Pages given back in one step: about a millisecond.
_GIVE_BACK_PAGES: Final = 32

_PAST: Final = "SELECT id FROM conversation_sessions WHERE created_at < ? ORDER BY created_at LIMIT ?"
_FORGOTTEN_PAST: Final = "SELECT digest FROM forgotten_turns WHERE forgotten_at < ? ORDER BY forgotten_at LIMIT ?"

#: Keys as bytes: one that is no text any more is passed over.
_OVERFULL: Final = """
SELECT CAST(coalesce(agent_handle, '') AS BLOB), CAST(coalesce(conversation_key, '') AS BLOB), count(*)
FROM conversation_sessions
WHERE trimmed = 0 AND (agent_handle, conversation_key) > (CAST(? AS TEXT), CAST(? AS TEXT))
GROUP BY agent_handle, conversation_key LIMIT ?
"""

#: The keys of a conversation as they stand in the store: where a read of the next ones begins.
Place = tuple[bytes, bytes]

START: Final[Place] = (b"", b"")


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did. `swept` rows went; `trimmed` entries went, whose rows stay; the disk got `given_back` bytes.

    `expired` digests of forgotten turns are kept no longer. `log_is_empty` is false where a reader holds the log.
    """

    swept: int = 0
    trimmed: int = 0
    expired: int = 0
    given_back: int = 0
    log_is_empty: bool = False


def sweep_some(db: apsw.Connection, horizon: int) -> int:
    """Delete rows from before `horizon` (seconds since 1970) for `_BATCH_S`. Answers how many; 0 if none are left."""
    return _delete_some(db, _PAST, "DELETE FROM conversation_sessions WHERE id = ?", horizon)


def expire_some(db: apsw.Connection, horizon: int) -> int:
    """The same for the digests of turns that were forgotten before `horizon`."""
    return _delete_some(db, _FORGOTTEN_PAST, "DELETE FROM forgotten_turns WHERE digest = ?", horizon)


def overfull(db: apsw.Connection, after: Place, max_entries: int) -> tuple[list[Conversation], Place | None]:
    """Some conversations with more kept entries than that, and where to go on from; None at the end."""
    found: list[tuple[Any, ...]] = db.execute(_OVERFULL, (*after, _CONVERSATIONS)).fetchall()
    last = (found[-1][0], found[-1][1]) if len(found) == _CONVERSATIONS else None
    if last is not None and last <= after:
        raise damaged("an index is out of its order")
    full = (conversation_of(seat, key) for seat, key, kept in found if kept > max_entries)
    return [conversation for conversation in full if conversation is not None], last


def give_back_some(db: apsw.Connection) -> int:
    """Give free pages back to the disk. Answers how many bytes; 0 once few are left."""
    free = db.pragma("freelist_count") - _SPARE_PAGES
    if free <= 0:
        return 0
    db.execute(f"PRAGMA incremental_vacuum({min(free, _GIVE_BACK_PAGES)})").fetchall()
    given: int = (free + _SPARE_PAGES - db.pragma("freelist_count")) * db.pragma("page_size")
    return given


def _delete_some(db: apsw.Connection, find: str, delete: str, horizon: int) -> int:
    until = time.monotonic() + _BATCH_S
    deleted = 0
    for (key,) in db.execute(find, (horizon, _BATCH_ROWS)).fetchall():
        db.execute(delete, (key,))
        if not db.changes():  # and so it would be found again each time
            raise damaged("an index names a row that is not there")
        deleted += 1
        if time.monotonic() >= until:
            break
    return deleted
