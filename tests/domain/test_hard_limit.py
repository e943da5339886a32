"""A caller's hard limit: less of the older turns first, then the newest entry's largest fields by size and digest."""

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from turnledger.compose import HISTORY_HEADING
from turnledger.limits import HARD_LIMIT_FLOOR_BYTES

from sidecar.domain.block import CONTRACT, History, build
from sidecar.domain.call_lines import lines
from sidecar.domain.entry import Entry
from tests.domain.block_reader import ReadBlock, read_block
from tests.domain.call_reader import Notice
from tests.domain.expectation import named
from tests.domain.making import FIXED_BYTES, NO_LIMIT, PLAIN, block, keeping, numbered, sized, write

_PREAMBLE: Final = f"{HISTORY_HEADING}\n\n{CONTRACT}"

#: More than an account's heading and left-out line take with the blank line after them.
_LEAST_ACCOUNT: Final = 160

#: More than the notices of a block take.
_NOTICES: Final = 300


def _read(history: History) -> ReadBlock:
    return read_block(history.text, _PREAMBLE)


def _texts(entry: Entry) -> dict[str, str]:
    final = {"reply" if entry.delivered else "unsent": entry.final_text}
    others = {"trigger": entry.trigger, "intent": entry.intent, "completed_work": entry.completed_work}
    shown = {**others, **final, "blocked_on": entry.blocked_on, "calls": "\n".join(lines(entry.calls))}
    return {name: text for name, text in shown.items() if text}


def _whole_or_named(found: ReadBlock, entry: Entry) -> int:
    """Checks the newest entry: each field is whole, or named by its size and digest. How many are named."""
    count = 0
    for name, text in _texts(entry).items():
        section = found.entries[-1].sections[name]
        if isinstance(section, Notice):
            assert section == named(text)
            count += 1
        elif name != "calls":
            assert section == text
    return count


_FIELDS: Final = st.builds(
    replace,
    st.just(PLAIN),
    **{name: st.integers(0, 9_000).map("é".__mul__) for name in ("trigger", "intent", "completed_work", "blocked_on")},
    final_text=st.integers(0, 200_000).map("t".__mul__),
    calls=st.integers(0, 300).map(lambda count: (write("tool"),) * count),
    delivered=st.booleans(),
    decision=st.sampled_from(("done", "failed")),
)


@settings(max_examples=120)
@given(
    st.lists(st.integers(150, 5_000), max_size=12),
    _FIELDS,
    st.integers(HARD_LIMIT_FLOOR_BYTES, 40_000),
    st.integers(0, 9),
)
def test_every_limit_is_kept(sizes: list[int], newest: Entry, limit: int, lost: int) -> None:
    """The block is within the limit; each field of the newest is whole or named, and it is said how many are named."""
    entries = [*numbered(sizes), newest]
    history = build(keeping(entries, lost, lost), limit)
    found = _read(history)
    assert history.size <= limit
    newest_bytes = len(history.text.rpartition("\n\n### ")[2].encode())
    assert history.size <= FIXED_BYTES + _NOTICES + max(24_000, 6_000 + newest_bytes)
    assert history.shown + history.condensed + history.left_out == len(entries)
    assert len(found.entries) == history.shown
    assert found.named == _whole_or_named(found, newest)
    assert (found.no_longer_kept, found.unreadable) == (lost, lost)
    for entry, shown in zip(entries[-history.shown : -1], found.entries[:-1], strict=True):
        assert shown.sections["trigger"] == entry.trigger


@settings(max_examples=60)
@given(st.lists(st.integers(150, 5_000), max_size=12), st.integers(150, 30_000), st.integers(-300, 8_000))
def test_the_newest_is_whole_as_long_as_it_fits(sizes: list[int], size: int, spare: int) -> None:
    """No field of the newest is named where leaving out older turns is enough to keep the limit."""
    limit = max(FIXED_BYTES + size + spare, HARD_LIMIT_FLOOR_BYTES)
    found = _read(block([*numbered(sizes), sized("newest01", size)], limit))
    if limit - FIXED_BYTES - size >= (_LEAST_ACCOUNT if sizes else 0):
        assert found.named == 0


@settings(max_examples=40)
@given(st.lists(st.integers(150, 5_000), max_size=12), st.integers(HARD_LIMIT_FLOOR_BYTES, 30_000))
def test_the_newest_is_whole_in_its_three_quarters(sizes: list[int], limit: int) -> None:
    """No field of the newest is named where it takes up to three quarters of what the limit leaves for entries."""
    size = (limit - FIXED_BYTES - _NOTICES) * 3 // 4
    found = _read(block([*numbered(sizes), sized("newest01", size)], limit))
    assert found.named == 0


def test_older_turns_give_way_first() -> None:
    """A newest entry over three quarters of the room is whole where less of the older turns makes room for it."""
    entries = numbered([800] * 60 + [7_500])
    found = _read(block(entries, 10_000))
    assert found.named == 0
    assert found.entries[-1].sections["trigger"] == entries[-1].trigger


def test_a_generous_limit_widens_nothing() -> None:
    """A limit above the bound of the block leaves the bound of the older turns as it is."""
    history = block(numbered([800] * 60 + [40_000]), 36_000)
    assert _read(history).named == 1
    assert history.size <= FIXED_BYTES + _NOTICES + 24_000


def test_a_limit_that_is_met_changes_nothing() -> None:
    """A limit of exactly the block's size, or none, gives the same bytes; a byte less does not."""
    entries = numbered([3_000, 3_000, 3_000])
    whole = block(entries)
    assert block(entries, whole.size) == whole
    assert block(entries, NO_LIMIT) == whole
    assert block(entries, whole.size - 1).size < whole.size


def test_the_largest_fields_go_first() -> None:
    """Only as many fields are named as must be, the largest first."""
    entry = replace(PLAIN, trigger="a" * 5_000, intent="b" * 1_000, final_text="c" * 8_000)
    for limit, gone in ((14_000, {"reply"}), (7_000, {"reply"}), (5_000, {"reply", "trigger"})):
        found = _read(block([entry], limit))
        sections = found.entries[0].sections
        assert {name for name, text in sections.items() if isinstance(text, Notice)} == gone
        assert found.named == len(gone)


def test_a_hundred_thousand_calls() -> None:
    """A turn of 100 000 calls is whole without a limit, and one notice under the smallest limit."""
    entry = replace(PLAIN, calls=(write(),) * 100_000)
    assert block([entry]).text.count("\n- x({}) → success") == 100_000
    history = block([entry], HARD_LIMIT_FLOOR_BYTES)
    assert history.size <= HARD_LIMIT_FLOOR_BYTES
    assert _read(history).entries[0].sections["calls"] == named("\n".join(lines(entry.calls)))


@pytest.mark.parametrize("character", ["\x00", "a", "😀"])
def test_the_largest_ids(character: str) -> None:
    """Ids of 256 bytes that differ in their last character alone leave room for everything that must be said."""
    length = (256 - 1) // len(character.encode())
    base = replace(PLAIN, delivered=False, decision="d" * 32, completed_at="9999-12-31T23:59:59.999999999Z")
    text = "x" * 9_000
    base = replace(base, trigger=text, intent=text, final_text=text, completed_work=text, blocked_on=text)
    entries = [replace(base, turn_id=character * length + end, calls=(write("w" * 999),) * 9) for end in "ab"]
    history = build(keeping(entries, 2**64, 2**32), HARD_LIMIT_FLOOR_BYTES)
    assert history.size <= HARD_LIMIT_FLOOR_BYTES
    assert (_read(history).named, history.shown, history.condensed + history.left_out) == (6, 1, 1)
