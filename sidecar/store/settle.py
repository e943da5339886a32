"""The transaction of Settle: what nobody had received becomes a reply, once, as a new version of the entry."""

from dataclasses import dataclass
from enum import StrEnum

import apsw
from msgspec.structs import replace

from sidecar.domain.eligibility import TurnKey
from sidecar.domain.errors import Code, LedgerError
from sidecar.store.row import find_turn


class SettleOutcome(StrEnum):
    """What became of a Settle."""

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
    row = find_turn(db, key)
    if row is None:
        return Settled(SettleOutcome.NOT_FOUND)
    entry_id = row.entry_id.decode()
    if row.data is None:
        return Settled(SettleOutcome.NO_LONGER_KEPT, entry_id)
    recorded = row.recorded()
    if recorded is None:
        raise LedgerError(Code.STORE_CORRUPT, "this turn's entry is damaged and cannot be settled")
    if recorded.entry.delivered:
        return Settled(SettleOutcome.ALREADY_REPLY, entry_id)
    row.replace(db, replace(recorded.entry, delivered=True), row.version + 1)
    return Settled(SettleOutcome.SETTLED, entry_id)
