"""Forget: what is named goes, and nothing else; a redelivery does not bring it back."""

from pathlib import Path
from typing import Any

import pytest

from sidecar.domain.eligibility import Conversation, Disposition, SkipReason, TurnKey
from sidecar.store import forgotten
from sidecar.store.store import Store
from tests.support.stores import CONVERSATION, SEAT, Clock, beside, key, open_store, read, record, texts

NEIGHBOURS = [
    key("w", "other"),
    key("w", CONVERSATION, "other"),
    key("w", CONVERSATION + "x"),
    key("w", seat=SEAT + "x"),
]


#: Statements that make one key of the second turns no valid text.
UNREADABLE = {
    "work_key": "UPDATE conversation_sessions SET work_key = CAST(x'ff61' AS TEXT) WHERE work_key = 'w1'",
    "entry_id": "UPDATE conversation_sessions SET entry_id = CAST(x'ff61' AS TEXT) WHERE work_key = 'w1'",
    "turn_id": "UPDATE conversation_sessions SET turn_id = CAST(x'ff61' AS TEXT) WHERE work_key = 'w1'",
}


async def _fill(store: Store, turns: int = 3) -> None:
    for number in range(turns):
        await record(store, key(f"w{number}"), f"t{number}")
    for neighbour in NEIGHBOURS:
        await record(store, neighbour, "neighbour")


async def _untouched(store: Store, neighbours: list[TurnKey]) -> bool:
    return all([await texts(store, neighbour) == ["neighbour"] for neighbour in neighbours])


async def test_one_turn(store: Store) -> None:
    """The scope of a turn takes that turn alone."""
    await _fill(store)
    assert await store.forget_turn(key("w1")) == 1
    assert await texts(store) == ["t0", "t2"]
    assert await _untouched(store, NEIGHBOURS)


async def test_one_conversation(store: Store) -> None:
    """The scope of a conversation takes one seat's side of it, another seat's stays."""
    await _fill(store)
    assert await store.forget_conversation(Conversation(SEAT, CONVERSATION)) == 3
    assert await texts(store) == []
    assert (await read(store)).kept.no_longer_kept == 0
    assert await _untouched(store, NEIGHBOURS)


async def test_one_seat(store: Store) -> None:
    """The scope of a seat takes all of its conversations, and no other seat's."""
    await _fill(store)
    assert await store.forget_seat(SEAT) == 5
    assert await texts(store) == []
    assert await texts(store, NEIGHBOURS[0]) == []
    assert await _untouched(store, [NEIGHBOURS[1], NEIGHBOURS[3]])


async def test_nothing_there_is_a_count_of_none(store: Store) -> None:
    """Forgetting what is not there answers 0, again and again."""
    for _ in range(2):
        assert await store.forget_turn(key("w")) == 0
        assert await store.forget_conversation(Conversation(SEAT, CONVERSATION)) == 0
        assert await store.forget_seat(SEAT) == 0


async def test_trimmed_turns_count_and_go(store: Store, store_path: Path) -> None:
    """Content-free rows of trimmed turns are among those that go."""
    for number in range(6):
        await record(store, key(f"w{number}"), max_entries=2)
    assert await store.forget_turn(key("w0")) == 1
    assert await store.forget_conversation(Conversation(SEAT, CONVERSATION)) == 5
    with beside(store_path) as db:
        assert db.execute("SELECT count(*) FROM conversation_sessions").get == 0


async def test_rows_without_a_work_key_go_with_their_conversation(store: Store) -> None:
    """A row that no work key names goes with its conversation and blocks no later one."""
    for _ in range(2):
        await record(store, key(""))
    assert await store.forget_turn(key("")) == 0
    assert await store.forget_conversation(Conversation(SEAT, CONVERSATION)) == 2
    assert (await record(store, key(""))).disposition is Disposition.RECORDED


@pytest.mark.parametrize("scope", ["turn", "conversation", "seat"])
async def test_redelivery_is_skipped_after_a_restart_too(store_path: Path, scope: str) -> None:
    """A forgotten turn does not come back, whichever scope took it; a new turn of the conversation does come."""
    async with open_store(store_path) as store:
        await record(store, key("a"), max_entries=1)
        await record(store, key("b"), max_entries=1)
        if scope == "turn":
            assert [await store.forget_turn(key(each)) for each in "ab"] == [1, 1]
        elif scope == "conversation":
            assert await store.forget_conversation(Conversation(SEAT, CONVERSATION)) == 2
        else:
            assert await store.forget_seat(SEAT) == 2
    async with open_store(store_path) as store:
        for each in "ab":
            again = await record(store, key(each))
            assert (again.disposition, again.skip_reason) == (Disposition.SKIPPED, SkipReason.FORGOTTEN)
            assert (again.entry_id, again.ordinal) == ("", 0)
            assert not (await read(store, key(each))).already_recorded
        assert (await record(store, key("c"), "c")).disposition is Disposition.RECORDED
        assert await texts(store) == ["c"]


async def test_tombstones_name_nobody(store: Store, store_path: Path) -> None:
    """What remains of a forgotten turn is a digest and a time: none of its keys."""
    await record(store, key("secret-work", "secret-conversation", "secret-seat"))
    await store.forget_seat("secret-seat")
    with beside(store_path) as db:
        rows: list[tuple[Any, ...]] = db.execute("SELECT * FROM forgotten_turns").fetchall()
    [(digest, forgotten_at)] = rows
    assert len(digest) == 32
    assert forgotten_at == Clock().now


async def test_neighbours_of_a_forgotten_key_are_recorded(store: Store) -> None:
    """Only the very keys that were forgotten are skipped."""
    await record(store, key("w"))
    await store.forget_turn(key("w"))
    for other in (key("W"), key("w", "c"), key("w", seat="s"), key("w\x00")):
        assert (await record(store, other)).disposition is Disposition.RECORDED


async def test_wide_scopes_go_in_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scope of more rows than one transaction takes goes whole, also where the last batch is just full."""
    monkeypatch.setattr(forgotten, "BATCH_ROWS", 4)
    for number in range(8):
        await record(store, key(f"w{number}"))
    for number in range(9):
        await record(store, key(f"w{number}", f"c{number % 2}"))
    assert await store.forget_conversation(Conversation(SEAT, CONVERSATION)) == 8
    assert await store.forget_seat(SEAT) == 9


@pytest.mark.parametrize("column", UNREADABLE)
async def test_damaged_key_does_not_keep_a_conversation_from_going(store: Store, store_path: Path, column: str) -> None:
    """Rows whose keys are no valid text any more are erased with their conversation and their seat all the same."""
    for number in range(3):
        await record(store, key(f"w{number}"))
        await record(store, key(f"w{number}", "other"))
    with beside(store_path) as db:
        db.execute(UNREADABLE[column])
    assert await store.forget_conversation(Conversation(SEAT, CONVERSATION)) == 3
    assert await store.forget_seat(SEAT) == 3


async def test_damaged_conversation_does_not_keep_a_seat_from_going(store: Store, store_path: Path) -> None:
    """A row whose conversation is no valid text any more goes with its seat."""
    for number in range(3):
        await record(store, key(f"w{number}", f"c{number}"))
    with beside(store_path) as db:
        db.execute("UPDATE conversation_sessions SET conversation_key = CAST(x'ff61' AS TEXT) WHERE work_key = 'w1'")
    assert await store.forget_seat(SEAT) == 3
