"""Indexes and table that disagree, as a lost write leaves them: sound to SQLite as long as it does not compare them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from sidecar.domain.eligibility import TurnKey
from sidecar.domain.errors import Code, LedgerError
from sidecar.store.files import check_file
from sidecar.store.store import Store
from tests.support.stores import beside, key, open_store, read, record, texts

_PAGE_BYTES = 4096


@contextmanager
def _write_lost(path: Path, name: str) -> Iterator[None]:
    """What is done within never reaches the (one) page of this index or table, though the disk said so."""
    place = _place(path, name)
    page = path.read_bytes()[place : place + _PAGE_BYTES]
    yield
    with path.open("r+b") as file:
        file.seek(place)
        assert file.read(_PAGE_BYTES) != page
        file.seek(place)
        file.write(page)


def _place(path: Path, name: str) -> int:
    """Where the root page of a table or an index is in the file."""
    with beside(path) as db:
        root: int = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).get
    return (root - 1) * _PAGE_BYTES


def _lead_back(path: Path) -> None:
    """Let the table's last pages be its first one again."""
    place = _place(path, "conversation_sessions")
    data = bytearray(path.read_bytes())
    page = data[place : place + _PAGE_BYTES]
    assert page[0] == 5, "the table's root is a page of pointers"
    children = [int.from_bytes(page[cell : cell + 2]) for cell in range(12, 12 + 2 * int.from_bytes(page[3:5]), 2)]
    first, last = place + children[0], place + children[-1]
    data[last : last + 4] = data[place + 8 : place + 12] = data[first : first + 4]
    path.write_bytes(data)


def _misplace_write(path: Path) -> None:
    """Write a page of another table in the table's place."""
    source, target = _place(path, "schema_migrations"), _place(path, "conversation_sessions")
    data = bytearray(path.read_bytes())
    data[target : target + _PAGE_BYTES] = data[source : source + _PAGE_BYTES]
    path.write_bytes(data)


def _shuffle(path: Path, name: str, seed: int) -> None:
    """Let the (one) page of an index hold its cells in a wrong order."""
    place = _place(path, name)
    data = bytearray(path.read_bytes())
    end = 8 + 2 * int.from_bytes(data[place + 3 : place + 5])
    cells = [data[place + cell : place + cell + 2] for cell in range(8, end, 2)]
    Random(seed).shuffle(cells)
    data[place + 8 : place + end] = b"".join(cells)
    path.write_bytes(data)


async def _filled(path: Path, *turns: str, conversation: str = "c") -> None:
    async with open_store(path) as store:
        for turn in turns:
            await record(store, key(turn, conversation), turn)


async def test_a_hidden_conversation_is_not_an_empty_one(store_path: Path) -> None:
    """Where an index lacks every row of a conversation, the answer is damage and no empty history; others are read."""
    await _filled(store_path, "a", conversation="other")
    with _write_lost(store_path, "conversation_sessions_by_conversation"):
        await _filled(store_path, "b", "c")
    assert not check_file(store_path, lambda _: None).sound
    async with open_store(store_path) as store:
        with pytest.raises(LedgerError) as raised:
            await read(store, key("", "c"))
        assert raised.value.code is Code.STORE_CORRUPT
        assert await texts(store, key("", "other")) == ["a"]
        assert (await read(store, key("", "nobody"))).kept.recorded == []


async def test_a_sweep_ends_where_an_index_names_rows_that_are_gone(store_path: Path) -> None:
    """A sweep that would find the same missing row again and again says that the store is damaged."""
    await _filled(store_path, "a", "b")
    with _write_lost(store_path, "conversation_sessions_by_age"):
        async with open_store(store_path) as store:
            await store.forget_turn(key("a", "c"))
    async with open_store(store_path) as store:
        with pytest.raises(LedgerError) as raised:
            await store.sweep(2_000_000_000, None)
        assert raised.value.code is Code.STORE_CORRUPT


async def test_a_sweep_ends_where_no_page_comes_free(store_path: Path) -> None:
    """A file that counts free pages it cannot give back costs a sweep nothing but that."""
    async with open_store(store_path) as store:
        for number in range(300):
            await record(store, key(f"w{number}"), "x" * 9_000)
    with store_path.open("r+b") as file:
        file.seek(52)  # of the header: whether pages can be given back at all
        file.write(bytes(4))
    async with open_store(store_path) as store:
        swept = await store.sweep(2_000_000_000, None)
        assert (swept.swept, swept.given_back) == (300, 0)


async def test_a_check_ends_where_pages_lead_back_to_themselves(store_path: Path) -> None:
    """A table whose pages form a ring is found damaged, and is not walked for ever."""
    await _filled(store_path, *(f"w{number}" for number in range(1_200)))
    await asyncio.to_thread(_lead_back, store_path)
    assert not check_file(store_path, lambda _: None).sound


@pytest.mark.parametrize("ordinal", [2**63 - 1, 1_000, 0, -7])
async def test_a_damaged_ordinal_costs_its_row(store: Store, store_path: Path, ordinal: int) -> None:
    """A row that claims a place which it cannot have takes no other with it, and later turns have theirs."""
    for turn in ("a", "b", "c"):
        await record(store, key(turn), turn)
    with beside(store_path) as db:
        db.pragma("ignore_check_constraints", True)
        db.execute("UPDATE conversation_sessions SET ordinal = ? WHERE work_key = 'b'", (ordinal,))
    kept = (await read(store)).kept
    assert [each.entry.final_text for each in kept.recorded][-2:] == ["a", "c"]
    assert kept.no_longer_kept == 0
    assert (await record(store, key("d"), "d")).ordinal == 4
    assert not (await store.check(lambda _: None)).sound
    assert await store.forget_turn(key("b")) == 1
    assert await texts(store) == ["a", "c", "d"]
    assert await store.forget_turn(key("a")) == 1
    assert await texts(store) == ["c", "d"]


async def test_a_foreign_page_in_the_tables_place_is_damage(store_path: Path) -> None:
    """Rows of another table, with values of other types or none, are unreadable ones, and no call fails as a bug."""
    await _filled(store_path, "a", "b")
    await asyncio.to_thread(_misplace_write, store_path)
    assert not check_file(store_path, lambda _: None).sound
    async with open_store(store_path) as store:
        with pytest.raises(LedgerError) as raised:
            await read(store, key("a", "c"))
        assert raised.value.code is Code.STORE_CORRUPT
        for call in (
            record(store, key("a", "c")),
            record(store, key("new", "c")),
            store.settle(key("b", "c")),
            store.sweep(1, 1),
            store.totals(),
            store.check(lambda _: None),
            store.forget_turn(key("b", "c")),
        ):
            [outcome] = await asyncio.gather(call, return_exceptions=True)
            assert not isinstance(outcome, BaseException) or isinstance(outcome, LedgerError), outcome


@pytest.mark.parametrize("seed", range(4))
async def test_a_turn_that_an_index_would_hide_is_refused(tmp_path: Path, seed: int) -> None:
    """An Append whose row is not found again where it was put is refused as damage; one that is recorded is shown."""
    path = tmp_path / "store.db"
    for conversation in ("a", "b", "c"):
        await _filled(path, "1", "2", conversation=conversation)
    _shuffle(path, "conversation_sessions_by_conversation", seed)
    async with open_store(path) as store:
        tried = [await _tried(store, key("3", conversation)) for conversation in ("a", "b", "c")]
    assert seed % 2 or Code.STORE_CORRUPT in tried, "the damage hides a turn"


async def _tried(store: Store, turn: TurnKey) -> Code | None:
    try:
        await record(store, turn, "the third")
    except LedgerError as refused:
        return refused.code
    assert (await texts(store, turn))[-1] == "the third"
    return None
