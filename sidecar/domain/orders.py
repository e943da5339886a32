"""Orders: which rewrites are wanted, and the ids that bring them back to the right place."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sidecar.domain.calls import SuppliedCall, over_budget, shown
from sidecar.domain.entry import EntryRef, Recorded, alone_within
from sidecar.domain.instructions import INSTRUCTIONS_VERSION, OrderKind, after_text, before_text
from sidecar.domain.limits import CONDENSED_BYTES, NOTE_BYTES, ORDER_BYTES
from sidecar.domain.payload import fingerprint
from sidecar.domain.text import size_of

LIMITS: Final = {
    OrderKind.ARGUMENT: CONDENSED_BYTES,
    OrderKind.ERROR: CONDENSED_BYTES,
    OrderKind.NOTE: NOTE_BYTES,
}


@dataclass(frozen=True, slots=True)
class OrderId:
    """What an order is for: the payloads of that digest in an entry, or the note of one version of it."""

    ref: EntryRef
    kind: OrderKind
    digest: str = ""
    instructions_version: int = INSTRUCTIONS_VERSION

    def __str__(self) -> str:
        ref = self.ref
        return f"{ref.row_id}.{ref.entry_id}.{ref.version}.{self.kind}.{self.instructions_version}.{self.digest}"


@dataclass(frozen=True, slots=True)
class Order:
    """A rewrite that is wanted, ready to run: the prompt is instructions, text and closing."""

    order_id: OrderId
    text: str
    limit: int
    instructions: str
    closing: str


_ID: Final = re.compile(
    r"(\d{1,18})\.([\w-]{1,64})\.(\d{1,9})\."
    r"(?:(argument|error)\.(\d{1,9})\.([0-9a-f]{64})|(note)\.(\d{1,9})\.)",
    re.ASCII,
)


def parse_order_id(text: str) -> OrderId | None:
    """The id that an order was issued under, or None for what no sidecar issued."""
    found = _ID.fullmatch(text)
    if found is None:
        return None
    ref = EntryRef(int(found[1]), found[2], int(found[3]))
    order_id = OrderId(ref, OrderKind(found[4] or found[7]), found[6] or "", int(found[5] or found[8]))
    return order_id if str(order_id) == text else None


def payload_orders(recorded: Recorded, supplied: Iterable[SuppliedCall]) -> list[Order]:
    """The orders for what stands in the entry by name alone, from the calls as they were sent, identical texts once.

    A call that is never shown needs no words, and a text past the order limit gets none.
    """
    open_digests = {payload.sha256 for call in shown(recorded.entry.calls) for payload in call.named()}
    orders = []
    for kind, text in (found for call in supplied for found in over_budget(call)):
        _, digest = fingerprint(text)
        if digest in open_digests and size_of(text) <= ORDER_BYTES:
            open_digests.remove(digest)
            orders.append(_order(OrderId(recorded.ref, kind, digest), text, digest))
    return orders


def note_order(recorded: Recorded) -> Order:
    """The order for the note of one entry: its text is the entry as rendered."""
    text = note_text(recorded)
    return _order(OrderId(recorded.ref, OrderKind.NOTE), text, fingerprint(text)[1])


def note_text(recorded: Recorded) -> str:
    """The entry as a note's original: whole, or with its largest fields by name where it is past the order limit."""
    return alone_within(recorded, ORDER_BYTES)


def _order(order_id: OrderId, text: str, digest: str) -> Order:
    limit = LIMITS[order_id.kind]
    return Order(order_id, text, limit, before_text(order_id.kind, limit, digest), after_text(limit, digest))
