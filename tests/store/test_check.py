"""The check: finds damage of every kind, counts it, names rows and never what is in them, and changes nothing."""

import asyncio
import time
from pathlib import Path

import pytest

from sidecar.domain.errors import Code, LedgerError
from sidecar.store.check import CheckReport, check
from sidecar.store.connection import open_beside
from sidecar.store.files import check_file
from sidecar.store.progress import Progress, unreported
from tests.support.stores import beside, files_in, key, open_store, record

DAMAGE = {
    "an entry's bytes": "UPDATE conversation_sessions SET entry = x'00' WHERE work_key = 'w1'",
    "another row's entry": (
        "UPDATE conversation_sessions SET (entry, checksum) ="
        " (SELECT entry, checksum FROM conversation_sessions WHERE work_key = 'w2') WHERE work_key = 'w1'"
    ),
    "what is kept taken for trimmed": "UPDATE conversation_sessions SET trimmed = 1 WHERE work_key = 'w1'",
    "a mark that there is not": "UPDATE conversation_sessions SET trimmed = 7 WHERE work_key = 'w1'",
    "an ordinal above its id": "UPDATE conversation_sessions SET ordinal = 99 WHERE work_key = 'w1'",
    "a key that is no text": (
        "UPDATE conversation_sessions SET agent_handle = CAST(x'ff' AS TEXT) WHERE work_key = 'w1'"
    ),
}


async def _store(path: Path) -> None:
    async with open_store(path) as store:
        for number in range(4):
            await record(store, key(f"w{number}"), f"canary {number}", max_entries=3)


def _checked(path: Path) -> CheckReport:
    db = open_beside(path)
    try:
        return check(db, unreported)
    finally:
        db.close()


async def test_a_sound_store(tmp_path: Path) -> None:
    """A store that nothing happened to is sound, and its rows and kept entries are counted."""
    await _store(tmp_path / "store.db")
    found = _checked(tmp_path / "store.db")
    assert found.sound
    assert (found.rows, found.entries) == (4, 3)


async def test_it_leaves_no_file_behind(tmp_path: Path) -> None:
    """A check of a file that nobody owns makes no log, no lock and no change."""
    await _store(tmp_path / "store.db")
    before, bytes_before = files_in(tmp_path), (tmp_path / "store.db").read_bytes()
    _checked(tmp_path / "store.db")
    assert files_in(tmp_path) == before
    assert (tmp_path / "store.db").read_bytes() == bytes_before


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE)
async def test_a_damaged_row_is_named(tmp_path: Path, statement: str) -> None:
    """A row whose text is damaged, or another's, is counted and named by its id, and nothing of its text is told."""
    await _store(tmp_path / "store.db")
    with beside(tmp_path / "store.db") as db:
        db.pragma("ignore_check_constraints", True)
        db.execute(statement)
    found = _checked(tmp_path / "store.db")
    assert not found.sound
    assert (found.unreadable, found.unreadable_ids) == (1, [2])
    assert "canary" not in repr(found)


async def test_damaged_pages_are_found(tmp_path: Path) -> None:
    """Pages that were overwritten are in the findings, and the check ends."""
    path = tmp_path / "store.db"
    async with open_store(path) as store:
        for number in range(50):
            await record(store, key(f"w{number}"), "canary" * 1_000)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 8_192] = b"\xa5" * 8_192
    path.write_bytes(data)
    found = _checked(path)
    assert not found.sound
    assert "canary" not in repr(found)


async def test_two_turns_in_one_place(tmp_path: Path) -> None:
    """Two rows with one ordinal in a conversation are damage."""
    await _store(tmp_path / "store.db")
    with beside(tmp_path / "store.db") as db:
        db.execute("UPDATE conversation_sessions SET ordinal = 3 WHERE ordinal = 2")
    assert _checked(tmp_path / "store.db").ordinals_twice == 1


async def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    """Another program's database, an empty file and plain text are no sound stores."""
    with beside(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE t (x)")
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello" * 1_000)
    for name in ("other.db", "empty", "text"):
        with pytest.raises(LedgerError) as refused:
            _checked(tmp_path / name)
        assert refused.value.code is Code.STORE_CORRUPT


async def test_an_open_store_is_checked_beside_its_work(tmp_path: Path) -> None:
    """The running store checks itself, says how far it is, and goes on recording."""
    seen: list[Progress] = []
    async with open_store(tmp_path / "store.db") as store:
        await record(store, key("w"))
        found = await store.check(seen.append)
        await record(store, key("w2"))
    assert found.sound
    assert [step.phase for step in seen] == ["pages and indexes", "rows"]
    assert (seen[-1].done, seen[-1].total) == (1, 1)


async def test_a_closing_store_does_not_wait_for_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that is under way when the store closes ends with a reason, and holds up nothing."""
    monkeypatch.setattr("sidecar.store.check._ROWS", 10)
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with open_store(tmp_path / "store.db") as store:
        for number in range(200):
            await record(store, key(f"w{number}", f"c{number}"))

        def slowly(_: Progress) -> None:
            loop.call_soon_threadsafe(begun.set)
            time.sleep(0.2)

        checking = asyncio.ensure_future(store.check(slowly))
        await begun.wait()
        began = time.monotonic()
    assert time.monotonic() - began < 2
    with pytest.raises(LedgerError) as refused:
        await checking
    assert refused.value.code is Code.STORE_UNAVAILABLE


async def test_a_header_that_makes_no_sense_is_damage(tmp_path: Path) -> None:
    """A file whose header names a format of the schema that there is not is told as damaged, not as a bug."""
    await _store(tmp_path / "store.db")
    with (tmp_path / "store.db").open("r+b") as file:
        file.seek(47)
        file.write(b"\x77")
    with pytest.raises(LedgerError) as raised:
        check_file(tmp_path / "store.db", unreported)
    assert raised.value.code is Code.STORE_CORRUPT
