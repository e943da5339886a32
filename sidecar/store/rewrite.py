"""The transaction of Fit: a rewrite that was found good takes its place, if that is still free."""

import apsw
from msgspec.structs import replace

from sidecar.domain.eligibility import Conversation
from sidecar.domain.entry import Entry, Note, Recorded, condense
from sidecar.domain.instructions import INSTRUCTIONS_VERSION, OrderKind
from sidecar.domain.orders import OrderId
from sidecar.store.row import find_entry


def find_open(db: apsw.Connection, conversation: Conversation, order_id: OrderId) -> Recorded | None:
    """The entry that an order of this conversation still waits in, or None: late, repeated, foreign or stale."""
    row = find_entry(db, conversation, order_id.ref)
    recorded = None if row is None else row.recorded()
    return None if recorded is None or _with(recorded, order_id, "") is None else recorded


def accept(db: apsw.Connection, conversation: Conversation, order_id: OrderId, rewrite: str) -> bool:
    """Put a good rewrite in its place. False, and nothing changed, where the order is no longer open."""
    row = find_entry(db, conversation, order_id.ref)
    recorded = None if row is None else row.recorded()
    entry = None if recorded is None else _with(recorded, order_id, rewrite)
    if row is None or entry is None:
        return False
    row.replace(db, entry, row.version)
    return True


def _with(recorded: Recorded, order_id: OrderId, rewrite: str) -> Entry | None:
    """The entry with the rewrite in it, or None where nothing waits for it."""
    if order_id.kind is not OrderKind.NOTE:
        return condense(recorded.entry, order_id.digest, rewrite)
    asked_for = (order_id.ref.version, order_id.instructions_version)
    if recorded.note or asked_for != (recorded.ref.version, INSTRUCTIONS_VERSION):
        return None
    return replace(recorded.entry, note=Note(rewrite, *asked_for))
