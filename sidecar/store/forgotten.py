"""Forget: rows go, and a digest stays so that a redelivery does not bring the turn back."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import apsw

from sidecar.domain.eligibility import Conversation, TurnKey
from sidecar.store.row import change_rows
from sidecar.store.transaction import Kind, transaction

#: Rows that one transaction of a wide Forget deletes, so that the writer is never held for long.
BATCH_ROWS: Final = 200

_REMEMBER: Final = "INSERT INTO forgotten_turns (digest, forgotten_at) VALUES (?, ?) ON CONFLICT DO NOTHING"

#: As bytes: a damaged key that is no text any more must not keep its row from being erased.
_KEYS: Final = """
SELECT id, CAST(agent_handle AS BLOB), CAST(conversation_key AS BLOB), CAST(work_key AS BLOB) FROM conversation_sessions
"""

_DELETE: Final = "DELETE FROM conversation_sessions WHERE id = ?"

#: Later turns move up by one, so that a gap in the ordinals always means an entry that is no longer kept.
_MOVE_UP: Final = """
UPDATE conversation_sessions SET ordinal = max(ordinal - 1, 1)
WHERE agent_handle = ? AND conversation_key = ? AND trimmed IN (0, 1) AND ordinal > ?
"""


def is_forgotten(db: apsw.Connection, key: TurnKey) -> bool:
    """Whether the turn was forgotten, and its digest is still kept."""
    found: int | None = db.execute("SELECT 1 FROM forgotten_turns WHERE digest = ?", (_digest(_keys(key)),)).get
    return found is not None


def forget_turn(db: apsw.Connection, key: TurnKey, now: int) -> int:
    """Delete one turn. Answers how many went: 0 or 1."""
    conversation = key.conversation
    row = db.execute(
        "SELECT id, ordinal FROM conversation_sessions"
        " WHERE agent_handle = ? AND conversation_key = ? AND work_key = ? AND work_key <> ''",
        (conversation.agent_handle, conversation.conversation_key, key.work_key),
    ).fetchone()
    if row is None:
        return 0
    row_id, ordinal = row
    _remember(db, _keys(key), now)
    db.execute(_DELETE, (row_id,))
    change_rows(db, _MOVE_UP, (conversation.agent_handle, conversation.conversation_key, ordinal))
    return 1


def forget_some_of_conversation(db: apsw.Connection, conversation: Conversation, now: int) -> int:
    """Delete up to `BATCH_ROWS` turns of a seat's conversation. Answers how many; fewer than that: none are left."""
    rows = db.execute(
        f"{_KEYS} WHERE agent_handle = ? AND conversation_key = ? LIMIT ?",
        (conversation.agent_handle, conversation.conversation_key, BATCH_ROWS),
    ).fetchall()
    return _forget_rows(db, rows, now)


def forget_some_of_seat(db: apsw.Connection, agent_handle: str, now: int) -> int:
    """Delete up to `BATCH_ROWS` turns of a seat. Answers how many; fewer than that: none are left."""
    rows = db.execute(f"{_KEYS} WHERE agent_handle = ? LIMIT ?", (agent_handle, BATCH_ROWS)).fetchall()
    return _forget_rows(db, rows, now)


def forget_again(db: apsw.Connection, digests: Iterable[tuple[bytes, int]]) -> int:
    """Delete whatever rows these digests (each with when it was forgotten) stand for. Answers how many went.

    For a store that came back from a backup and that nobody uses yet: it looks at every row.
    """
    with transaction(db, Kind.IMMEDIATE):
        db.executemany(_REMEMBER, digests)
        db.create_scalar_function("turn_digest", lambda *keys: _digest(keys), 3, deterministic=True)
        db.execute(
            "DELETE FROM conversation_sessions WHERE work_key <> '' AND turn_digest(CAST(agent_handle AS BLOB),"
            " CAST(conversation_key AS BLOB), CAST(work_key AS BLOB)) IN (SELECT digest FROM forgotten_turns)"
        )
        return db.changes()


def _forget_rows(db: apsw.Connection, rows: Sequence[tuple[Any, ...]], now: int) -> int:
    for row_id, *keys in rows:
        if all(keys):
            _remember(db, keys, now)
        db.execute(_DELETE, (row_id,))
    return len(rows)


def _remember(db: apsw.Connection, keys: Iterable[bytes], now: int) -> None:
    db.execute(_REMEMBER, (_digest(keys), now))


def _keys(key: TurnKey) -> Iterator[bytes]:
    conversation = key.conversation
    return (part.encode() for part in (conversation.agent_handle, conversation.conversation_key, key.work_key))


def _digest(keys: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256()
    for key in keys:
        digest.update(len(key).to_bytes(8))
        digest.update(key)
    return digest.digest()
