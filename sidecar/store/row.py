"""A kept row: finding one, reading its entry, and putting a changed entry in its place."""

from typing import Any, Final

import apsw
from msgspec import Struct

from sidecar.domain.eligibility import Conversation, TurnKey
from sidecar.domain.entry import Entry, EntryRef, Recorded
from sidecar.store.codec import Identity, Unreadable, decode, seal

#: Texts as bytes, and each value of its type, whatever a damaged page holds: one that is wrong costs its row alone.
COLUMNS: Final = """id, CAST(coalesce(work_key, '') AS BLOB), CAST(coalesce(entry_id, '') AS BLOB),
  CAST(coalesce(version, 0) AS INTEGER), CAST(entry AS BLOB), CAST(checksum AS BLOB)"""

_BY_WORK_KEY: Final = f"""
SELECT {COLUMNS} FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND work_key = ? AND work_key <> ''
"""

_BY_ID: Final = f"""
SELECT {COLUMNS} FROM conversation_sessions
WHERE id = ? AND agent_handle = ? AND conversation_key = ? AND entry_id = ?
"""

_REPLACE: Final = """
UPDATE conversation_sessions SET version = ?, entry = ?, checksum = ?, rendered_bytes = ? WHERE id = ?
"""

#: Each value is of its column's type. The table is STRICT: a value of another type, as a damaged page may hold it,
#: makes each change of its row fail, whichever column that changes.
_TYPED: Final = """typeof(agent_handle) = 'text' AND typeof(conversation_key) = 'text' AND typeof(work_key) = 'text'
  AND typeof(turn_id) = 'text' AND typeof(entry_id) = 'text' AND typeof(ordinal) = 'integer'
  AND typeof(version) = 'integer' AND typeof(trimmed) = 'integer' AND typeof(rendered_bytes) = 'integer'
  AND typeof(entry) IN ('blob', 'null') AND typeof(checksum) IN ('blob', 'null') AND typeof(created_at) = 'integer'"""


class Row(Struct, frozen=True, gc=False):
    """One row as it stands; `data` and `checksum` are None once it is trimmed."""

    conversation: Conversation
    row_id: int
    work_key: bytes
    entry_id: bytes
    version: int
    data: bytes | None
    checksum: bytes | None

    def recorded(self) -> Recorded | None:
        """The entry, or None if it is no longer kept, is damaged, or is another row's."""
        if self.data is None or self.checksum is None:
            return None
        try:
            entry, body = decode(self._identity(self.version), self.data, self.checksum)
        except Unreadable:
            return None
        return Recorded(EntryRef(self.row_id, self.entry_id.decode(), self.version), entry, body)

    def replace(self, db: apsw.Connection, entry: Entry, version: int) -> None:
        """Put the entry in this one's place."""
        sealed = seal(self._identity(version), entry)
        db.execute(_REPLACE, (version, sealed.data, sealed.checksum, sealed.rendered_bytes, self.row_id))

    def _identity(self, version: int) -> Identity:
        conversation = self.conversation
        keys = (conversation.agent_handle.encode(), conversation.conversation_key.encode())
        return Identity(*keys, self.work_key, self.entry_id, version)


def row_of(conversation: Conversation, columns: tuple[Any, ...]) -> Row:
    """The row of `COLUMNS`."""
    return Row(conversation, *columns)


def conversation_of(agent_handle: bytes, conversation_key: bytes) -> Conversation | None:
    """The conversation that these keys name, or None where one is no text any more."""
    try:
        return Conversation(agent_handle.decode(), conversation_key.decode())
    except UnicodeDecodeError:
        return None


def change_rows(db: apsw.Connection, update: str, values: tuple[Any, ...]) -> int:
    """Change rows by an UPDATE that ends in its conditions, but for damaged ones that cannot be. Answers how many."""
    try:
        db.execute(update, values)
    except apsw.ConstraintError:
        db.execute(f"{update} AND {_TYPED}", values)
    return db.changes()


def find_turn(db: apsw.Connection, key: TurnKey) -> Row | None:
    """The row of a turn, trimmed or not."""
    conversation = key.conversation
    keys = (conversation.agent_handle, conversation.conversation_key, key.work_key)
    return _one(db, conversation, _BY_WORK_KEY, keys)


def find_entry(db: apsw.Connection, conversation: Conversation, ref: EntryRef) -> Row | None:
    """The row of an entry, if that conversation has it: a reference of another seat's finds nothing."""
    keys = (ref.row_id, conversation.agent_handle, conversation.conversation_key, ref.entry_id)
    return _one(db, conversation, _BY_ID, keys)


def _one(db: apsw.Connection, conversation: Conversation, query: str, keys: tuple[Any, ...]) -> Row | None:
    columns = db.execute(query, keys).fetchone()
    return None if columns is None else row_of(conversation, columns)
