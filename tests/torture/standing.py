"""Turns as they were asked for, and what stands of them in a store: read past the product's own reading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import apsw

from sidecar.domain.eligibility import Conversation, TurnKey
from sidecar.domain.entry import Entry
from sidecar.store.forgotten import is_forgotten
from sidecar.store.row import Row


@dataclass(slots=True, eq=False)
class Turn:
    """One turn and what was acknowledged of it. `entry_id` is empty until its Append was answered.

    `began` and `ended` order the Appends of all callers: one that ended before another began is recorded before it.
    """

    key: TurnKey
    text: str
    entry_id: str = ""
    order_id: str = ""
    settled: bool = False
    fitted: bool = False
    forgotten: bool = False
    began: int = 0
    ended: int | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """A row as it stands. `entry` is None once it is trimmed, and where it does not pass its checksum."""

    row_id: int
    ordinal: int
    entry_id: str
    entry: Entry | None
    trimmed: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands in a store: rows by their keys, and which of the asked turns it knows as forgotten."""

    rows: Mapping[TurnKey, Sequence[Kept]]
    forgotten: frozenset[TurnKey]

    def placed(self, turns: Sequence[Turn]) -> Sequence[tuple[Kept, Turn]]:
        """The rows of a conversation's turns, by ordinal."""
        rows = ((row, turn) for turn in turns for row in self.rows.get(turn.key, ()))
        return sorted(rows, key=lambda each: each[0].ordinal)


EMPTY: Final = Standing({}, frozenset())


def read_standing(path: Path, turns: Sequence[Turn]) -> Standing:
    """Read all rows of a store that nobody owns, past the product's own reading."""
    db = apsw.Connection(str(path))
    rows: dict[TurnKey, list[Kept]] = {}
    try:
        found: list[Any] = db.execute(
            "SELECT id, agent_handle, conversation_key, work_key, entry_id, version, entry, checksum, ordinal, trimmed"
            " FROM conversation_sessions ORDER BY id"
        ).fetchall()
        forgotten = frozenset(turn.key for turn in turns if is_forgotten(db, turn.key))
    finally:
        db.close()
    for row_id, seat, conversation, work_key, entry_id, version, data, checksum, ordinal, trimmed in found:
        key = TurnKey(Conversation(seat, conversation), work_key)
        row = Row(key.conversation, row_id, work_key.encode(), entry_id.encode(), version, data, checksum)
        recorded = row.recorded()
        kept = Kept(row_id, ordinal, entry_id, None if recorded is None else recorded.entry, bool(trimmed))
        rows.setdefault(key, []).append(kept)
    return Standing(rows, forgotten)
