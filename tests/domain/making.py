"""Entries and calls by hand, with the fields that a test does not care about filled in, and sizes to the byte."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace
from turnledger.compose import HISTORY_HEADING

from sidecar.domain.block import CONTRACT, History, Kept, build
from sidecar.domain.calls import Call, CallKind, SuppliedCall, keep
from sidecar.domain.entry import Entry, EntryRef, Recorded

NO_LIMIT: Final = 10**12

#: Bytes of a block that are not its entries: the heading and the contract, each with the blank line after it.
FIXED_BYTES: Final = len(f"{HISTORY_HEADING}\n\n{CONTRACT}\n\n".encode())

PLAIN: Final = Entry(
    turn_id="0a1b2c3d4e5f",
    completed_at="2026-01-01T00:00:00Z",
    trigger="",
    intent="",
    calls=(),
    delivered=True,
    final_text="",
    completed_work="",
    blocked_on="",
    decision="done",
)


def recorded(entries: Sequence[Entry]) -> list[Recorded]:
    """The entries as a store keeps them, in their first version."""
    return [Recorded(EntryRef(place, f"entry-{place}", 1), entry) for place, entry in enumerate(entries, start=1)]


def keeping(entries: Sequence[Entry], no_longer_kept: int = 0, unreadable: int = 0) -> Kept:
    """What a store still has of a conversation."""
    return Kept(recorded(entries), no_longer_kept, unreadable)


def write(name: str = "x", *, failed: bool = False) -> Call:
    return keep(SuppliedCall(name, "{}", CallKind.WRITE, failed))


def read(name: str = "r") -> Call:
    return keep(SuppliedCall(name, "{}", CallKind.READ))


def rendered_bytes(entry: Entry) -> int:
    """Bytes of the entry alone in a block."""
    return block((entry,)).size - FIXED_BYTES


def block(entries: tuple[Entry, ...] | list[Entry], hard_limit: int = NO_LIMIT) -> History:
    return build(keeping(entries), hard_limit)


def sized(turn_id: str, size: int, base: Entry = PLAIN) -> Entry:
    """An entry that takes exactly `size` bytes in a block in which its id is unique within 8 characters."""
    empty = replace(base, turn_id=turn_id, trigger="x")
    return replace(empty, trigger="x" * (1 + size - rendered_bytes(empty)))


def numbered(sizes: list[int], base: Entry = PLAIN) -> tuple[Entry, ...]:
    """Entries of exactly these sizes, oldest first, told apart by their ids' first 8 characters."""
    return tuple(sized(f"{place:08d}", size, base) for place, size in enumerate(sizes))
