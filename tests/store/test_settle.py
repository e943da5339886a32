"""Settle: what nobody had received becomes a reply, once, as a new version of the entry."""

import asyncio
from pathlib import Path

import pytest

from sidecar.domain.errors import Code, LedgerError
from sidecar.store.settle import SettleOutcome
from sidecar.store.store import Store
from tests.support.stores import beside, entry, key, open_store, read, record

UNSENT = entry("The gauge reads 4 bar.\r\n\x00", delivered=False, blocked_on="no answer", decision="blocked")


async def test_unsent_becomes_reply_and_stays(store_path: Path) -> None:
    """The text is a reply from then on, nothing else of the entry changes, and a restart keeps it."""
    async with open_store(store_path) as store:
        await store.append(key("a"), UNSENT, "id-a", 20)
        settled = await store.settle(key("a"))
        assert (settled.outcome, settled.entry_id) == (SettleOutcome.SETTLED, "id-a")
    async with open_store(store_path) as store:
        [kept] = (await read(store)).kept.entries
        assert kept == entry(UNSENT.final_text, delivered=True, blocked_on="no answer", decision="blocked")


async def test_settling_is_one_way_and_idempotent(store: Store, store_path: Path) -> None:
    """A second Settle changes nothing and says so; the version counts the one change."""
    await store.append(key("a"), UNSENT, "id-a", 20)
    outcomes = [(await store.settle(key("a"))).outcome for _ in range(3)]
    assert outcomes == [SettleOutcome.SETTLED, SettleOutcome.ALREADY_REPLY, SettleOutcome.ALREADY_REPLY]
    with beside(store_path) as db:
        assert db.execute("SELECT version FROM conversation_sessions").fetchall() == [(2,)]


async def test_reply_needs_no_settling(store: Store, store_path: Path) -> None:
    """An entry that was a reply from the start keeps its version."""
    await record(store, key("a"))
    assert (await store.settle(key("a"))).outcome is SettleOutcome.ALREADY_REPLY
    with beside(store_path) as db:
        assert db.execute("SELECT version FROM conversation_sessions").get == 1


@pytest.mark.parametrize("other", [key("b"), key("A"), key("a", "c"), key("a", seat="s"), key("")])
async def test_unknown_turn_is_an_outcome(store: Store, other: object) -> None:
    """A turn that is not there is answered as such, however near its keys come."""
    await store.append(key("a"), UNSENT, "id-a", 20)
    await store.append(key(""), UNSENT, "id-b", 20)
    settled = await store.settle(other)  # type: ignore[arg-type]
    assert (settled.outcome, settled.entry_id) == (SettleOutcome.NOT_FOUND, "")
    assert not any(each.delivered for each in (await read(store)).kept.entries)


async def test_trimmed_turn_is_no_longer_kept(store: Store) -> None:
    """A turn whose entry was trimmed is known by its id, and stays trimmed."""
    await store.append(key("a"), UNSENT, "id-a", 1)
    await record(store, key("b"), "b", max_entries=1)
    settled = await store.settle(key("a"))
    assert (settled.outcome, settled.entry_id) == (SettleOutcome.NO_LONGER_KEPT, "id-a")
    assert len((await read(store)).kept.entries) == 1


async def test_forgotten_turn_is_not_found(store: Store) -> None:
    """A forgotten turn cannot be settled."""
    await store.append(key("a"), UNSENT, "id-a", 20)
    await store.forget_turn(key("a"))
    assert (await store.settle(key("a"))).outcome is SettleOutcome.NOT_FOUND


async def test_settled_entry_keeps_its_place(store: Store) -> None:
    """A new version does not move its entry."""
    await store.append(key("a"), UNSENT, "id-a", 20)
    await record(store, key("b"), "b")
    await store.settle(key("a"))
    assert [each.final_text for each in (await read(store)).kept.entries] == [UNSENT.final_text, "b"]


async def test_callers_at_once_settle_once(store: Store) -> None:
    """Of many Settles at once exactly one is the one that settled."""
    await store.append(key("a"), UNSENT, "id-a", 20)
    outcomes = [each.outcome for each in await asyncio.gather(*(store.settle(key("a")) for _ in range(20)))]
    assert outcomes.count(SettleOutcome.SETTLED) == 1
    assert outcomes.count(SettleOutcome.ALREADY_REPLY) == 19


async def test_damaged_entry_is_an_error_and_not_made_good(store: Store, store_path: Path) -> None:
    """An entry that cannot be read is not sealed anew: it stays what it was and the caller learns of it."""
    await store.append(key("a"), UNSENT, "id-a", 20)
    with beside(store_path) as db:
        db.execute("UPDATE conversation_sessions SET entry = CAST(entry || x'00' AS BLOB)")
        before = db.execute("SELECT version, entry, checksum FROM conversation_sessions").fetchall()
        with pytest.raises(LedgerError) as raised:
            await store.settle(key("a"))
        assert raised.value.code is Code.STORE_CORRUPT
        assert db.execute("SELECT version, entry, checksum FROM conversation_sessions").fetchall() == before
