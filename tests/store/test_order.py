"""Ordinals, trim and order: what was recorded later stands later, whatever any clock said."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.domain.eligibility import Conversation, Disposition
from sidecar.store.store import Store
from tests.support.stores import SEAT, Clock, beside, entry, key, open_store, read, record, texts


async def test_ordinals_count_within_a_conversation(store: Store) -> None:
    """Each seat's conversation counts from 1 without a gap, whatever others do in between."""
    for number in range(3):
        for conversation, seat in (("c1", "s1"), ("c2", "s1"), ("c1", "s2")):
            appended = await record(store, key(f"w{number}", conversation, seat))
            assert appended.ordinal == number + 1


async def test_duplicates_use_up_no_ordinal(store: Store) -> None:
    """A redelivery leaves no hole."""
    await record(store, key("a"))
    for _ in range(3):
        await record(store, key("a"))
    assert (await record(store, key("b"))).ordinal == 2


@pytest.mark.parametrize("moment", ["equal", "backward", "negative"])
async def test_order_is_of_recording(store_path: Path, moment: str) -> None:
    """Equal, backward and absurd clocks change no order, neither the store's nor the entries' own."""
    steps = {"equal": [7, 7, 7, 7], "backward": [9, 7, 5, 3], "negative": [5, -5, 3, -9]}[moment]
    clock = Clock()
    async with open_store(store_path, clock=clock) as store:
        for number, now in enumerate(steps):
            clock.now = now
            completed = f"20{10 + now:02}-01-01T00:00:00Z" if now > 0 else "0001-01-01T00:00:00Z"
            await store.append(key(f"w{number}"), entry(f"t{number}", completed_at=completed), f"id-{9 - number}", 20)
        assert await texts(store) == ["t0", "t1", "t2", "t3"]
        assert await texts(store, max_entries=2) == ["t2", "t3"]


@pytest.mark.parametrize("most", [1, 2, 7])
async def test_trim_keeps_exactly_the_newest(store: Store, store_path: Path, most: int) -> None:
    """After each write no more than `max_entries` entries are kept: the newest ones, with their ordinals."""
    for number in range(1, 12):
        appended = await record(store, key(f"w{number}"), f"t{number}", max_entries=most)
        assert appended.ordinal == number
        kept = await texts(store)
        assert kept == [f"t{each}" for each in range(max(1, number - most + 1), number + 1)]
    assert (await read(store)).kept.no_longer_kept == 11 - most
    with beside(store_path) as db:
        rows = db.execute(
            "SELECT ordinal, trimmed, entry, checksum, turn_id FROM conversation_sessions ORDER BY ordinal"
        )
        for ordinal, trimmed, data, seal, turn_id in rows:
            gone = ordinal <= 11 - most
            assert (trimmed, data is None, seal is None, turn_id == "") == (gone, gone, gone, gone)


async def test_lowered_value_trims_on_the_next_write(store: Store) -> None:
    """A smaller `max_entries` is kept to exactly by the next write, and shown at once."""
    for number in range(9):
        await record(store, key(f"w{number}"), f"t{number}")
    assert await texts(store, max_entries=3) == ["t6", "t7", "t8"]
    assert (await read(store, max_entries=3)).kept.no_longer_kept == 6
    await record(store, key("w9"), "t9", max_entries=3)
    assert await texts(store) == ["t7", "t8", "t9"]


async def test_duplicate_trims_nothing(store: Store) -> None:
    """A redelivery under a smaller `max_entries` writes nothing at all."""
    for number in range(4):
        await record(store, key(f"w{number}"), f"t{number}")
    await record(store, key("w0"), max_entries=1)
    assert await texts(store) == ["t0", "t1", "t2", "t3"]


async def test_trim_stays_in_its_conversation(store: Store) -> None:
    """A busy conversation costs its neighbours nothing."""
    others = [key("w", "c2"), key("w", "c1", "s2"), key("w", "c"), key("w", "c11")]
    for other in others:
        await record(store, other, "other")
    for number in range(5):
        await record(store, key(f"w{number}", "c1", SEAT), max_entries=1)
    for other in others:
        assert await texts(store, other) == ["other"]


async def test_ordinal_follows_the_highest_surviving_one(store: Store) -> None:
    """Forgetting the newest gives its ordinal back, forgetting all begins again at 1."""
    for number in range(3):
        await record(store, key(f"w{number}"), f"t{number}")
    await store.forget_turn(key("w2"))
    assert (await record(store, key("w3"), "t3")).ordinal == 3
    await store.forget_conversation(Conversation(SEAT, key("").conversation.conversation_key))
    assert (await record(store, key("w4"), "t4")).ordinal == 1
    assert await texts(store) == ["t4"]


async def test_forgotten_turns_are_not_counted_as_lost(store: Store) -> None:
    """Of trimmed and forgotten turns only the trimmed ones count as no longer kept, wherever they stood."""
    for number in range(8):
        await record(store, key(f"w{number}"), f"t{number}", max_entries=5)
    for gone in ("w0", "w4", "w7"):
        assert await store.forget_turn(key(gone)) == 1
    reading = await read(store)
    assert [each.final_text for each in reading.kept.entries] == ["t3", "t5", "t6"]
    assert reading.kept.no_longer_kept == 2
    assert (await record(store, key("w8"), "t8", max_entries=2)).ordinal == 6
    assert await texts(store) == ["t6", "t8"]
    assert (await read(store)).kept.no_longer_kept == 4


_steps = st.lists(
    st.tuples(st.sampled_from(["append", "append", "append", "forget"]), st.integers(0, 9), st.integers(1, 4)),
    max_size=25,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_steps)
async def test_any_history_of_writes_reads_as_its_model(store: Store, steps: list[tuple[str, int, int]]) -> None:
    """Whatever is appended, redelivered, trimmed and forgotten, in any order: the rows are those of a plain model."""
    seat = f"seat-{_count(store)}"
    rows: list[tuple[int, bool]] = []
    forgotten: set[int] = set()
    for what, number, most in steps:
        turn = key(f"w{number}", "c", seat)
        there = any(number == each for each, _ in rows)
        if what == "forget":
            assert await store.forget_turn(turn) == int(there)
            rows = [row for row in rows if row[0] != number]
            forgotten |= {number} if there else set()
            continue
        appended = await record(store, turn, f"t{number}", max_entries=most)
        if number in forgotten:
            assert appended.disposition is Disposition.SKIPPED
        elif there:
            assert appended.disposition is Disposition.DUPLICATE
        else:
            assert (appended.disposition, appended.ordinal) == (Disposition.RECORDED, len(rows) + 1)
            rows.append((number, True))
            kept = [each for each, whole in rows if whole][-most:]
            rows = [(each, each in kept) for each, _ in rows]
    reading = await read(store, key("", "c", seat))
    assert [each.final_text for each in reading.kept.entries] == [f"t{number}" for number, whole in rows if whole]
    assert reading.kept.no_longer_kept == sum(not whole for _, whole in rows)


_seen: list[int] = []


def _count(store: Store) -> int:
    """A number for each example, so that each has a seat of its own."""
    _seen.append(id(store))
    return len(_seen)
