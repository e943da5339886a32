"""Notes live with one version of their entry: kept over restarts, asked for once, gone with the entry."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from sidecar.domain.eligibility import Conversation, TurnKey
from sidecar.domain.entry import EntryRef, Note
from sidecar.domain.instructions import INSTRUCTIONS_VERSION, OrderKind
from sidecar.domain.orders import OrderId, note_order
from sidecar.store.append import Appended
from sidecar.store.store import Store
from tests.support.stores import CONVERSATION, SEAT, beside, entry, key, open_store, read, record, traces

_HERE: Final = Conversation(SEAT, CONVERSATION)
_NEEDLE: Final = "qz7Xnote"


def _note_of(ref: EntryRef | None) -> OrderId:
    assert ref is not None
    return OrderId(ref, OrderKind.NOTE)


async def _noted(store: Store, work_key: str = "a", **fields: Any) -> OrderId:
    """An entry with a note."""
    appended = await store.append(key(work_key), entry(**fields), f"id-{work_key}", 20)
    order_id = _note_of(appended.ref)
    assert await store.accept(_HERE, order_id, f"{_NEEDLE} {work_key}")
    return order_id


async def _notes(store: Store) -> list[str]:
    return [each.note for each in (await read(store)).kept.recorded]


async def test_bound_to_versions_and_kept(store_path: Path) -> None:
    """A note is kept with its entry's version and its instructions', over a restart, and changes nothing else."""
    async with open_store(store_path) as store:
        await _noted(store)
    async with open_store(store_path) as store:
        [kept] = (await read(store)).kept.recorded
        assert kept.entry.note == Note(f"{_NEEDLE} a", 1, INSTRUCTIONS_VERSION)
        assert replace(kept.entry, note=None) == entry()
        assert (kept.ref.version, kept.note) == (1, f"{_NEEDLE} a")


async def test_a_second_note_is_not_open(store: Store) -> None:
    """The first note stays, whoever comes later."""
    order_id = await _noted(store)
    assert await store.open_entry(_HERE, order_id) is None
    assert not await store.accept(_HERE, order_id, "another")
    assert await _notes(store) == [f"{_NEEDLE} a"]


async def test_many_at_once(store: Store) -> None:
    """Of many notes for one entry at once exactly one is taken, and that one is kept."""
    ref = (await record(store, key("a"))).ref
    taken = await asyncio.gather(*(store.accept(_HERE, _note_of(ref), f"n{number}") for number in range(50)))
    assert taken.count(True) == 1
    assert await _notes(store) == [f"n{taken.index(True)}"]


async def test_settle_makes_it_stale(store: Store) -> None:
    """A note from before a Settle is shown no more, its order is closed, and the new version's is open."""
    order_id = await _noted(store, delivered=False)
    await store.settle(key("a"))
    assert await _notes(store) == [""]
    assert not await store.accept(_HERE, order_id, "late")
    renewed = OrderId(replace(order_id.ref, version=2), OrderKind.NOTE)
    assert await store.accept(_HERE, renewed, "delivered after all")
    assert await _notes(store) == ["delivered after all"]


@pytest.mark.parametrize("version", [INSTRUCTIONS_VERSION - 1, INSTRUCTIONS_VERSION + 1])
async def test_an_order_by_other_instructions(store: Store, version: int) -> None:
    """What was made by other instructions is not taken."""
    ref = (await record(store, key("a"))).ref
    assert ref is not None
    assert not await store.accept(_HERE, OrderId(ref, OrderKind.NOTE, "", version), "old words")
    assert await _notes(store) == [""]


@pytest.mark.parametrize(
    "change",
    [{"row_id": 2}, {"row_id": 10**17}, {"entry_id": "id-b"}, {"entry_id": ""}, {"version": 2}, {"version": 0}],
)
async def test_only_the_very_reference(store: Store, change: dict[str, object]) -> None:
    """Row, entry id and version have to agree: an id of another node's row of that number finds nothing."""
    ref = (await store.append(key("a"), entry(), "id-a", 20)).ref
    await store.append(key("b"), entry(), "id-b", 20)
    assert ref is not None
    order_id = _note_of(replace(ref, **change))
    assert await store.open_entry(_HERE, order_id) is None
    assert not await store.accept(_HERE, order_id, "foreign")
    assert await _notes(store) == ["", ""]


@pytest.mark.parametrize("other", [Conversation("other", CONVERSATION), Conversation(SEAT, "jira:POC-8")])
async def test_only_its_own_conversation(store: Store, other: Conversation) -> None:
    """Another seat, or the same in another conversation, cannot put words into this one's mouth."""
    ref = (await record(store, key("a"))).ref
    assert not await store.accept(other, _note_of(ref), "foreign")
    assert await _notes(store) == [""]


@pytest.mark.parametrize("how", ["trim", "turn", "conversation", "seat", "settle"])
async def test_gone_from_the_files(store: Store, store_path: Path, how: str) -> None:
    """A note goes with its entry, from the files too, and its order is closed; a new one replaces a stale one."""
    order_id = await _noted(store, delivered=False)
    assert traces(store_path, _NEEDLE.encode())
    match how:
        case "trim":
            await record(store, key("b"), max_entries=1)
        case "turn":
            await store.forget_turn(key("a"))
        case "conversation":
            await store.forget_conversation(_HERE)
        case "seat":
            await store.forget_seat(SEAT)
        case _:
            await store.settle(key("a"))
            await store.accept(_HERE, OrderId(replace(order_id.ref, version=2), OrderKind.NOTE), "new")
    assert not await store.accept(_HERE, order_id, "late")
    assert await store.finish_erasure()
    assert traces(store_path, _NEEDLE.encode()) == {}


async def _slide(store: Store, turn: TurnKey, size: int) -> Appended:
    return await record(store, turn, "x" * size)


async def test_slid_out_once(store: Store) -> None:
    """Each entry slides out with the one Append that made it, in order, and none that is still whole does."""
    out: list[int] = []
    for number in range(30):
        appended = await _slide(store, key(f"w{number}"), 3_000)
        found = [each.recorded() for each in appended.slid_out]
        out += [each.ref.row_id for each in found if each is not None]
    assert out == list(range(1, len(out) + 1))
    assert 30 - len(out) == 5


async def test_a_giant_slides_all_out_at_once(store: Store) -> None:
    """A giant reply pushes out all that stood whole before it, with their texts for the notes."""
    for number in range(6):
        await _slide(store, key(f"w{number}"), 3_000)
    appended = await _slide(store, key("giant"), 50_000)
    found = [each.recorded() for each in appended.slid_out]
    assert [each.ref.row_id for each in found if each is not None] == list(range(1, 7))
    assert all(each is not None and "x" * 3_000 in note_order(each).text for each in found)


async def test_a_damaged_entry_slides_out_without_a_note(store: Store, store_path: Path) -> None:
    """An entry that cannot be read is no reason to fail the Append that pushes it out."""
    await _slide(store, key("a"), 9_000)
    with beside(store_path) as db:
        db.execute("UPDATE conversation_sessions SET entry = x'00'")
    appended = await _slide(store, key("b"), 18_000)
    assert [each.recorded() for each in appended.slid_out] == [None]
