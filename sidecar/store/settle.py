"""The transaction of Settle: what nobody had received becomes a reply, once, as a new version of the entry."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import apsw

from sidecar.domain.eligibility import TurnKey
from sidecar.domain.errors import Code, LedgerError
from sidecar.store.codec import Identity, Unreadable, checksum, decode, encode

_SELECT: Final = """
SELECT id, entry_id, version, entry, checksum FROM conversation_sessions
WHERE agent_handle = ? AND conversation_key = ? AND work_key = ? AND work_key <> ''
"""

_UPDATE: Final = "UPDATE conversation_sessions SET version = ?, entry = ?, checksum = ? WHERE id = ?"


class SettleOutcome(StrEnum):
    SETTLED = "settled"
    ALREADY_REPLY = "already_reply"
    NOT_FOUND = "not_found"
    NO_LONGER_KEPT = "no_longer_kept"


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a Settle. `entry_id` is empty where the turn was not found."""

    outcome: SettleOutcome
    entry_id: str = ""


def settle(db: apsw.Connection, key: TurnKey) -> Settled:
    """Turn the entry's unsent text into its reply. Raises `LedgerError` STORE_CORRUPT if the entry cannot be read."""
    conversation = key.conversation
    row = db.execute(_SELECT, (conversation.agent_handle, conversation.conversation_key, key.work_key)).fetchone()
    if row is None:
        return Settled(SettleOutcome.NOT_FOUND)
    row_id, entry_id, version, data, expected = row
    if data is None:
        return Settled(SettleOutcome.NO_LONGER_KEPT, entry_id)
    try:
        entry = decode(Identity(key, entry_id, version), data, expected)
    except Unreadable as error:
        raise LedgerError(Code.STORE_CORRUPT, "this turn's entry is damaged and cannot be settled") from error
    if entry.delivered:
        return Settled(SettleOutcome.ALREADY_REPLY, entry_id)
    settled = encode(replace(entry, delivered=True))
    seal = checksum(Identity(key, entry_id, version + 1), settled)
    db.execute(_UPDATE, (version + 1, settled, seal, row_id))
    return Settled(SettleOutcome.SETTLED, entry_id)
