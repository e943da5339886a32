"""One entry for each seat, conversation and work key, compared byte for byte, for as long as the row is kept."""

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.domain.eligibility import Disposition, TurnKey
from sidecar.store.store import Store
from tests.support.stores import entry, key, open_store, read, record, texts

ALIKE = [
    ("work", "Work"),
    ("caf\u00e9", "cafe\u0301"),
    ("a", "a\x00"),
    ("a\x00b", "a\x00c"),
    ("a", "a "),
    ("1", "01"),
    ("a", "\ufeffa"),
    ("stra\u00dfe", "strasse"),
    ("\U0001f642", "\ufffd"),
]


async def test_second_is_a_duplicate_of_the_first(store: Store) -> None:
    """The second append of a key writes nothing and names the first one's entry."""
    first = await store.append(key("a"), entry("one"), "id-1", 20)
    second = await store.append(key("a"), entry("two"), "id-2", 20)
    assert (first.disposition, first.entry_id, first.ordinal) == (Disposition.RECORDED, "id-1", 1)
    assert (second.disposition, second.entry_id, second.ordinal) == (Disposition.DUPLICATE, "id-1", 1)
    assert await texts(store) == ["one"]


async def test_dedupe_outlives_trim_and_restart(store_path: Path) -> None:
    """A trimmed turn that is redelivered stays a duplicate and does not come back as the newest."""
    async with open_store(store_path) as store:
        for number in range(5):
            await record(store, key(f"w{number}"), f"t{number}", max_entries=2)
    async with open_store(store_path) as store:
        again = [await record(store, key(f"w{number}"), "again", max_entries=2) for number in range(5)]
        assert {each.disposition for each in again} == {Disposition.DUPLICATE}
        assert [each.ordinal for each in again] == [1, 2, 3, 4, 5]
        assert await texts(store) == ["t3", "t4"]


async def test_empty_work_keys_are_distinct_rows(store: Store) -> None:
    """The store takes every row without a work key, also where the entry ids are alike."""
    for number in range(3):
        appended = await store.append(key(""), entry(f"t{number}"), "same-id", 20)
        assert appended.disposition is Disposition.RECORDED
        assert appended.ordinal == number + 1
    assert await texts(store) == ["t0", "t1", "t2"]
    assert (await read(store, key(""))).already_recorded is False


@pytest.mark.parametrize("place", ["seat", "conversation", "work_key"])
async def test_keys_are_compared_byte_for_byte(store: Store, place: str) -> None:
    """Keys that differ in a single byte are different: case, composition, NUL, spaces."""
    for number, (one, other) in enumerate(ALIKE):
        for variant in (one, other):
            parts = {"work_key": f"w{number}", "conversation": f"c{number}", "seat": f"s{number}"}
            turn = key(**(parts | {place: variant}))
            appended = await record(store, turn)
            assert appended.disposition is Disposition.RECORDED, (place, variant)
            assert (await read(store, turn)).already_recorded


async def test_cuts_of_one_text_are_different_keys(store: Store) -> None:
    """No way of cutting one text into seat, conversation and work key meets another, neither recorded nor forgotten."""
    cuts = [
        ("ab", "c", "d"),
        ("a", "bc", "d"),
        ("a", "b", "cd"),
        ("a:b", "c", "d"),
        ("a", "b:c", "d"),
        ("a", "b", "c:d"),
    ]
    cuts += [("a\x00b", "c", "d"), ("a", "b\x00c", "d"), ("a", "b", "c\x00d")]
    for seat, conversation, work_key in cuts:
        turn = key(work_key, conversation, seat)
        assert (await record(store, turn)).disposition is Disposition.RECORDED
        assert await store.forget_turn(turn) == 1


async def test_longest_keys_differ_in_their_last_byte(store: Store) -> None:
    """Keys of the greatest length are kept whole: the 512th byte still tells two apart."""
    long = "k" * 511
    for last in "ab":
        assert (await record(store, key("w", long + last, long + last))).disposition is Disposition.RECORDED
        assert (await record(store, key("w", long + last, long + last))).disposition is Disposition.DUPLICATE


_text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
_runs = itertools.count()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=st.lists(st.tuples(_text, _text, _text), min_size=1, max_size=12))
async def test_dedupe_is_equality_of_keys(store: Store, keys: list[tuple[str, str, str]]) -> None:
    """For any keys at all: recorded where the triple is new, a duplicate where it was there."""
    run = f"{next(_runs)}/"
    seen: set[TurnKey] = set()
    for seat, conversation, work_key in keys:
        turn = key(work_key, conversation, run + seat)
        expected = Disposition.DUPLICATE if turn in seen else Disposition.RECORDED
        assert (await record(store, turn)).disposition is expected
        seen.add(turn)
