"""A damaged page can hold a value of another type than its column's, which SQLite then refuses to write again."""

from pathlib import Path

import pytest

from sidecar.domain.eligibility import Disposition
from sidecar.domain.errors import Code, LedgerError
from sidecar.store.settle import SettleOutcome
from sidecar.store.store import Store
from tests.support.stores import entry, key, open_store, put_in, read, record, texts

_DAMAGES = [("turn_id", b"bytes"), ("version", "two"), ("rendered_bytes", 1.5), ("created_at", None), ("checksum", "x")]


async def _damaged(path: Path, row_id: int, column: str, value: object) -> None:
    """Three turns, of which one is damaged."""
    async with open_store(path) as store:
        for each in ("a", "b", "c"):
            await record(store, key(each), each)
    put_in(path, row_id, column, value)


@pytest.mark.parametrize(("column", "value"), _DAMAGES)
async def test_one_row_holds_up_no_forget_of_another(tmp_path: Path, column: str, value: object) -> None:
    """A turn is forgotten though a row after it cannot be changed."""
    await _damaged(tmp_path / "store.db", 2, column, value)
    async with open_store(tmp_path / "store.db") as store:
        assert await store.forget_turn(key("a")) == 1
        assert (await record(store, key("d"), "d")).disposition is Disposition.RECORDED
        assert "a" not in await texts(store)
        assert (await texts(store))[-2:] == ["c", "d"]


@pytest.mark.parametrize(("column", "value"), _DAMAGES)
async def test_one_row_holds_up_no_trim(tmp_path: Path, column: str, value: object) -> None:
    """A conversation with a row that cannot be trimmed takes turns, and shows no more than the newest."""
    await _damaged(tmp_path / "store.db", 2, column, value)
    async with open_store(tmp_path / "store.db") as store:
        for turn in ("d", "e"):
            assert (await record(store, key(turn), turn, max_entries=2)).disposition is Disposition.RECORDED
        assert await texts(store, max_entries=2) == ["d", "e"]


async def test_a_damaged_row_is_told_as_damage(tmp_path: Path) -> None:
    """A Settle of the row that cannot be changed is refused as damage, and another turn's goes through."""
    path = tmp_path / "store.db"
    async with open_store(path) as store:
        for turn in ("a", "b"):
            await _unsent(store, turn)
    put_in(path, 2, "created_at", 1.5)
    async with open_store(path) as store:
        with pytest.raises(LedgerError) as refused:
            await store.settle(key("b"))
        assert refused.value.code is Code.STORE_CORRUPT
        assert (await store.settle(key("a"))).outcome is SettleOutcome.SETTLED
        assert (await read(store)).kept.unreadable == 0


async def test_an_ordinal_that_is_no_whole_number_costs_no_turn(tmp_path: Path) -> None:
    """The next turn of its conversation is recorded, and shown."""
    await _damaged(tmp_path / "store.db", 3, "ordinal", 2.5)
    async with open_store(tmp_path / "store.db") as store:
        assert (await record(store, key("d"), "d")).disposition is Disposition.RECORDED
        assert (await texts(store))[-1] == "d"


async def _unsent(store: Store, turn: str) -> None:
    await store.append(key(turn), entry(turn, delivered=False), f"id-{turn}", 20)
