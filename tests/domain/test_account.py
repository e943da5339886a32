"""The account: the sidecar's own facts of the older turns, oldest first, and what had no room is counted."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from turnledger.compose import HISTORY_HEADING

from sidecar.domain.account import write_account
from sidecar.domain.block import CONTRACT
from sidecar.domain.calls import CallKind, SuppliedCall, keep
from sidecar.domain.entry import Entry
from tests.domain.block_reader import read_block
from tests.domain.making import PLAIN, block, read, recorded, sized, write

_PREAMBLE: Final = f"{HISTORY_HEADING}\n\n{CONTRACT}"
_NEWEST: Final = sized("newest01", 20_000)

#: Bytes of UTF-8 for the account: its quarter, without the blank line after it.
_ROOM: Final = 5_998


def _account(entries: list[Entry]) -> str:
    """The account of the entries before a newest one that takes the whole part for itself."""
    padded = [replace(entries[0], trigger="x" * 6_000), *entries[1:]]
    text = block([*padded, _NEWEST]).text.removeprefix(_PREAMBLE + "\n\n")
    return text[: text.index("\n\n### 2026")]


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        ({"final_text": "hi"}, "replied; no writes"),
        ({}, "replied nothing; no writes"),
        ({"delivered": False}, "did NOT reply; no writes"),
        ({"delivered": False, "final_text": "hi"}, "did NOT reply; no writes"),
        ({"final_text": "hi", "blocked_on": "x"}, "replied; blocked; no writes"),
        ({"final_text": "hi", "decision": "failed"}, "replied; ended failed; no writes"),
        ({"delivered": False, "blocked_on": "x", "decision": "b_c"}, "did NOT reply; blocked; ended b_c; no writes"),
        ({"final_text": "hi", "calls": (read(), write())}, "replied; writes: x"),
        ({"final_text": "hi", "calls": (write("b"), write("a"), write("b"))}, "replied; writes: b ×2, a"),
        ({"final_text": "hi", "calls": (write("b"), write("b", failed=True))}, "replied; writes: b ×2 (1 failed)"),
        ({"final_text": "hi", "calls": (read(), keep(SuppliedCall("m", "{}", CallKind.META)))}, "replied; no writes"),
    ],
)
def test_facts(fields: dict[str, Any], facts: str) -> None:
    """An item says when, which run, whether anybody was told, what blocked, how it ended, and which writes ran."""
    account = _account([replace(PLAIN, **fields)])
    expected = f"- 2026-01-01T00:00:00Z (turn 0a1b2c3d): {facts} (no note)"
    assert account == f"### 1 older turn(s), condensed\n\n{expected}"


def _items(count: int, **fields: Any) -> list[Entry]:
    return [replace(PLAIN, turn_id=f"{place:08d}", **fields) for place in range(count)]


def test_left_out_oldest_first() -> None:
    """What has no room is left out oldest first, and a line says how many turns and how many of them replied."""
    entries = [replace(entry, final_text="r" if place % 3 else "") for place, entry in enumerate(_items(200))]
    found = read_block(block([*entries, _NEWEST]).text, _PREAMBLE)
    assert 0 < found.left_out < 200
    assert (found.account_of, len(found.items)) == (200, 200 - found.left_out)
    for entry, item in zip(entries[found.left_out :], found.items, strict=True):
        assert item.startswith(f"2026-01-01T00:00:00Z (turn {entry.turn_id}): ")
    assert found.left_out_replied == sum(bool(entry.final_text) for entry in entries[: found.left_out])


def test_an_undelivered_text_is_no_reply() -> None:
    """A left-out turn whose text nobody received does not count as replied."""
    found = read_block(block([*_items(200, delivered=False, final_text="r"), _NEWEST]).text, _PREAMBLE)
    assert (found.left_out > 0, found.left_out_replied) == (True, 0)


@given(st.integers(60, 130), st.integers(8, 120))
def test_as_many_as_fit(count: int, width: int) -> None:
    """The account keeps its room, and not one turn more would have fitted but for the digits of the left-out line."""
    entries = _items(count, calls=(write("w" * width),), final_text="r")
    account = _account(entries)
    found = read_block(block([replace(entries[0], trigger="x" * 6_000), *entries[1:], _NEWEST]).text, _PREAMBLE)
    assert len(account.encode()) <= _ROOM
    item = len(f"- {found.items[0]}\n".encode())
    if found.left_out > 1:
        assert len(account.encode()) + item > _ROOM - 8


def test_the_quarter_to_the_byte() -> None:
    """The account and the blank line after it take 6 000 bytes at most, and as many where an item fits to the byte."""
    sizes = []
    for width in range(1, 100):
        newest = replace(PLAIN, turn_id="zzzzzzzz", calls=(write("w" * width),), final_text="r")
        sizes.append(len(_account([*_items(98, final_text="r"), newest]).encode()))
    assert max(sizes) == _ROOM


def test_all_that_fits_is_there() -> None:
    """Where all items fit, none is left out to make room for the line that says so."""
    entries = _items(60, final_text="r")
    ids = {entry.turn_id: entry.turn_id for entry in entries}
    needed = len(write_account(recorded(entries), ids, 10**6).text.encode())
    for room in (needed, needed + 1, needed + 59):
        account = write_account(recorded(entries), ids, room)
        assert (account.condensed, account.left_out) == (60, 0)


def test_room_to_the_byte() -> None:
    """An item that fits to the byte is there; with a byte less it is left out, and the line says one turn more."""
    entries = _items(40, final_text="r")
    ids = {entry.turn_id: entry.turn_id for entry in entries}
    some = write_account(recorded(entries), ids, 2_000)
    assert 10 < some.left_out < 39
    needed = len(some.text.encode())
    assert write_account(recorded(entries), ids, needed) == some
    assert write_account(recorded(entries), ids, needed - 1).left_out == some.left_out + 1


def test_no_room_at_all() -> None:
    """Where not even the heading fits, heading and left-out line stand all the same: nothing goes in silence."""
    entries = _items(3, final_text="r")
    account = write_account(recorded(entries), {entry.turn_id: entry.turn_id for entry in entries}, 0)
    line = "- (+3 still older turn(s) left out, 3 of them replied)"
    assert (account.text, account.condensed, account.left_out) == (f"### 3 older turn(s), condensed\n\n{line}", 0, 3)


def test_a_turn_of_very_many_writes() -> None:
    """One turn with more write names than the account has room for does not silence the turns before it."""
    giant = replace(PLAIN, turn_id="giant", calls=tuple(write(f"tool_number_{place}") for place in range(1_000)))
    found = read_block(block([*_items(5, final_text="r"), giant, _NEWEST]).text, _PREAMBLE)
    assert any("(turn 00000004)" in item for item in found.items)


def test_names_cannot_forge_facts() -> None:
    """A tool whose name imitates the facts is quoted."""
    name = "a; replied (no note)\n- x"
    item = _account([replace(PLAIN, delivered=False, calls=(write(name),))]).split("\n")[-1]
    assert item.endswith('did NOT reply; writes: "a; replied (no note)\\n- x" (no note)')
