"""The bound of the block: 24 000 bytes whole, else the newest within 18 000 and the older ones within 6 000."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from turnledger.compose import HISTORY_HEADING

from sidecar.domain.block import CONTRACT, build
from sidecar.domain.entry import Entry
from tests.domain.block_reader import read_block
from tests.domain.making import FIXED_BYTES, NO_LIMIT, PLAIN, block, keeping, numbered, rendered_bytes, sized

_PREAMBLE: Final = f"{HISTORY_HEADING}\n\n{CONTRACT}"
_APART: Final = 2


def _counts(entries: tuple[Entry, ...]) -> tuple[int, int, int]:
    history = block(entries)
    return history.shown, history.condensed, history.left_out


@pytest.mark.parametrize("count", [1, 2, 5, 20])
def test_exactly_the_bound_is_whole(count: int) -> None:
    """Entries of 24 000 bytes, with what stands between them, are all whole."""
    each = (24_000 - _APART * (count - 1)) // count
    sizes = [each] * (count - 1)
    entries = numbered([*sizes, 24_000 - sum(sizes) - _APART * (count - 1)])
    assert _counts(entries) == (count, 0, 0)
    assert block(entries).size == FIXED_BYTES + 24_000


def test_a_byte_more_is_not_whole() -> None:
    """With 24 001 bytes the oldest of four entries stands in the account, since it alone is over the last quarter."""
    assert _counts(numbered([6_000, 6_000, 6_000, 5_994])) == (4, 0, 0)
    assert _counts(numbered([6_000, 6_000, 6_000, 5_995])) == (3, 1, 0)
    assert _counts(numbered([6_001, 6_000, 5_994, 6_000])) == (3, 1, 0)


def test_bytes_count_and_not_characters() -> None:
    """The bound is of UTF-8."""
    entry = replace(PLAIN, trigger="é" * 8_000)
    assert _counts((entry, replace(entry, turn_id="zzzzzzzz"))) == (1, 1, 0)


def test_notices_do_not_count() -> None:
    """Contract, headings of sections and notices are not part of the bound."""
    entries = numbered([12_000, 11_998])
    history = build(keeping(entries, no_longer_kept=10**18, unreadable=7), NO_LIMIT)
    assert (history.shown, history.condensed) == (2, 0)
    assert history.size > FIXED_BYTES + 24_000


def test_the_newest_within_three_quarters() -> None:
    """18 000 bytes of newest entries are whole, at 18 001 the oldest of them is not."""
    assert _counts(numbered([9_000, 9_000, 8_998])) == (2, 1, 0)
    assert _counts(numbered([9_000, 9_000, 8_999])) == (1, 2, 0)
    assert _counts(numbered([6_001, 18_000])) == (1, 1, 0)


def test_older_ones_that_fit_their_quarter() -> None:
    """Older entries of up to 6 000 bytes with the blank line after them are whole; a byte more condenses them."""
    assert _counts(numbered([5_998, 18_001])) == (2, 0, 0)
    assert _counts(numbered([5_999, 18_001])) == (1, 1, 0)
    assert _counts(numbered([2_998, 2_998, 30_000])) == (3, 0, 0)
    assert _counts(numbered([2_998, 2_999, 30_000])) == (1, 2, 0)


@pytest.mark.parametrize("size", [18_001, 24_000, 24_001, 1_000_000])
def test_the_newest_is_always_whole(size: int) -> None:
    """The newest entry survives whole, however long, with the account of the others beside it."""
    entries = numbered([4_000, 4_000, size])
    assert _counts(entries) == (1, 2, 0)
    found = read_block(block(entries).text, _PREAMBLE)
    assert found.entries[-1].sections["trigger"] == entries[-1].trigger
    assert (found.account_of, len(found.items), found.named) == (2, 2, 0)


def _expected(sizes: list[int]) -> int:
    """How many entries are whole, from their sizes alone."""
    if sum(sizes) + _APART * (len(sizes) - 1) <= 24_000:
        return len(sizes)
    runs = (count for count in range(len(sizes), 0, -1) if sum(sizes[-count:]) + _APART * (count - 1) <= 18_000)
    run = next(runs, 1)
    older = sizes[: len(sizes) - run]
    return len(sizes) if sum(older) + _APART * len(older) <= 6_000 else run


_SIZES: Final = st.one_of(st.integers(150, 1_500), st.integers(150, 9_000), st.integers(17_900, 40_000))


@given(st.lists(_SIZES, min_size=1, max_size=25))
def test_what_is_whole(sizes: list[int]) -> None:
    """The longest run of newest entries is whole, the counts add up, and the block keeps its bound."""
    entries = numbered(sizes)
    history = block(entries)
    assert history.shown == _expected(sizes)
    assert history.shown + history.condensed + history.left_out == len(entries)
    assert history.size - FIXED_BYTES <= (24_000 if sizes[-1] <= 18_000 else 6_000 + sizes[-1])
    found = read_block(history.text, _PREAMBLE)
    assert [each.sections["trigger"] for each in found.entries] == [each.trigger for each in entries[-history.shown :]]
    assert (len(found.items), found.left_out) == (history.condensed, history.left_out)
    assert found.account_of == history.condensed + history.left_out


def test_sizes_to_the_byte() -> None:
    """The tests' own measure: an entry made for a size has it."""
    assert rendered_bytes(sized("abcdefgh", 5_000)) == 5_000
