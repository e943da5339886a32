"""Damage is noticed, and costs the row that it hit and no other."""

import os
import random
from pathlib import Path

import apsw
import pytest

from sidecar.domain.errors import Code, LedgerError
from sidecar.store.database import Database
from sidecar.store.store import Store
from tests.support.stores import CONVERSATION, SEAT, beside, entry, key, open_store, read, record, texts

DAMAGES = {
    "a flipped byte": "UPDATE conversation_sessions SET entry = CAST(x'00' || substr(entry, 2) AS BLOB)",
    "a byte less": "UPDATE conversation_sessions SET entry = substr(entry, 1, length(entry) - 1)",
    "a byte more": "UPDATE conversation_sessions SET entry = CAST(entry || x'00' AS BLOB)",
    "no bytes": "UPDATE conversation_sessions SET entry = x''",
    "another seal": "UPDATE conversation_sessions SET checksum = zeroblob(16)",
    "an empty seal": "UPDATE conversation_sessions SET checksum = x''",
    "another version": "UPDATE conversation_sessions SET version = version + 1",
    "another entry id": "UPDATE conversation_sessions SET entry_id = 'id-x'",
    "another work key": "UPDATE conversation_sessions SET work_key = 'wx'",
    "a work key that is no text": "UPDATE conversation_sessions SET work_key = CAST(x'ff61' AS TEXT)",
    "an entry id that is no text": "UPDATE conversation_sessions SET entry_id = CAST(x'ff61' AS TEXT)",
}


async def _fill(store: Store) -> None:
    for number in range(4):
        await record(store, key(f"w{number}"), f"t{number}")


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damage_costs_that_row(store: Store, store_path: Path, damage: str) -> None:
    """A damaged row is counted as unreadable, every other one is read, in order."""
    await _fill(store)
    with beside(store_path) as db:
        db.execute(f"{DAMAGES[damage]} WHERE work_key = 'w1'")
    kept = (await read(store)).kept
    assert [each.final_text for each in kept.entries] == ["t0", "t2", "t3"]
    assert (kept.unreadable, kept.no_longer_kept) == (1, 0)


@pytest.mark.parametrize("whose", ["another row's", "another conversation's", "another seat's"])
async def test_another_ones_text_is_not_shown(store: Store, store_path: Path, whose: str) -> None:
    """Entry and seal of another row, conversation or seat, swapped in together, are noticed."""
    await _fill(store)
    other = {
        "another row's": key("w3"),
        "another conversation's": key("w1", "c"),
        "another seat's": key("w1", seat="s"),
    }[whose]
    await record(store, other, "foreign")
    with beside(store_path) as db:
        db.execute(
            "UPDATE conversation_sessions SET (entry, checksum, entry_id, version) ="
            " (SELECT entry, checksum, entry_id, version FROM conversation_sessions"
            "  WHERE agent_handle = ?1 AND conversation_key = ?2 AND work_key = ?3)"
            " WHERE agent_handle = ?4 AND conversation_key = ?5 AND work_key = 'w1'",
            (other.conversation.agent_handle, other.conversation.conversation_key, other.work_key, SEAT, CONVERSATION),
        )
    kept = (await read(store)).kept
    assert [each.final_text for each in kept.entries] == ["t0", "t2", "t3"]
    assert kept.unreadable == 1


async def test_row_moved_to_another_conversation_is_not_shown(store: Store, store_path: Path) -> None:
    """A row whose conversation was changed under it shows its text to nobody."""
    await record(store, key("w", "private"), "private")
    await record(store, key("w1"), "t1")
    with beside(store_path) as db:
        db.execute(
            "UPDATE conversation_sessions SET conversation_key = ? WHERE conversation_key = 'private'", (CONVERSATION,)
        )
    assert await texts(store) == ["t1"]


async def test_all_rows_damaged_is_an_error(store: Store, store_path: Path) -> None:
    """Where there are entries and none can be read, the answer is an error and no empty history."""
    await _fill(store)
    await record(store, key("w", "c"), "other")
    with beside(store_path) as db:
        db.execute(
            "UPDATE conversation_sessions SET checksum = zeroblob(16) WHERE conversation_key = ?", (CONVERSATION,)
        )
    with pytest.raises(LedgerError) as raised:
        await read(store)
    assert raised.value.code is Code.STORE_CORRUPT
    assert await texts(store, key("", "c")) == ["other"]


async def test_damaged_conversation_still_takes_turns(store: Store, store_path: Path) -> None:
    """A new turn is recorded beside damaged rows and read, and what is damaged can be forgotten."""
    await _fill(store)
    with beside(store_path) as db:
        db.execute("UPDATE conversation_sessions SET entry = x'ff'")
    assert (await record(store, key("w4"), "t4")).ordinal == 5
    assert await texts(store) == ["t4"]
    assert [await store.forget_turn(key(f"w{number}")) for number in range(4)] == [1, 1, 1, 1]
    assert (await read(store)).kept.unreadable == 0


async def test_damaged_id_is_damage(store: Store, store_path: Path) -> None:
    """Settling or redelivering a turn whose entry id is no text any more is told as damage, and no bug."""
    await _fill(store)
    with beside(store_path) as db:
        db.execute("UPDATE conversation_sessions SET entry_id = CAST(x'ff61' AS TEXT)")
    for call in (store.settle(key("w1")), record(store, key("w1"))):
        with pytest.raises(LedgerError) as raised:
            await call
        assert raised.value.code is Code.STORE_CORRUPT


async def test_any_single_flipped_byte_is_noticed(store: Store, store_path: Path) -> None:
    """No byte of an entry can change unseen."""
    await store.append(key("w"), entry("text \u00e9\U0001f642", trigger="t" * 40), "id", 20)
    await record(store, key("good"), "good")
    with beside(store_path) as db:
        data: bytes = db.execute("SELECT entry FROM conversation_sessions WHERE work_key = 'w'").get
        for place in random.Random(7).sample(range(len(data)), 25):
            flipped = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
            db.execute("UPDATE conversation_sessions SET entry = ? WHERE work_key = 'w'", (flipped,))
            assert await texts(store) == ["good"]
        db.execute("UPDATE conversation_sessions SET entry = ? WHERE work_key = 'w'", (data,))
    assert len(await texts(store)) == 2


@pytest.mark.parametrize("size", [60, 100, 2_000, 4_096, 10_000])
async def test_truncated_file_is_an_error(store_path: Path, size: int) -> None:
    """A file that lost its end is answered as corrupt, at opening or at the read, and never as an empty history."""
    async with open_store(store_path) as store:
        for number in range(8):
            await record(store, key(f"w{number}"), "x" * 9_000)
    os.truncate(store_path, size)
    with pytest.raises((LedgerError, apsw.Error)) as raised:
        async with open_store(store_path) as store:
            await read(store)
    assert isinstance(raised.value, LedgerError)
    assert raised.value.code is Code.STORE_CORRUPT


def test_garbage_is_not_touched(store_path: Path) -> None:
    """A file that is no database is answered as corrupt and stays as it is, for whoever wants to rescue it."""
    garbage = b"not a database at all " * 1_000
    store_path.write_bytes(garbage)
    with pytest.raises(LedgerError) as raised:
        Database(store_path, now=1)
    assert raised.value.code is Code.STORE_CORRUPT
    assert store_path.read_bytes() == garbage
