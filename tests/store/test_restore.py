"""The restore: a verified backup takes the store's place, without what was forgotten since, or nothing changes."""

from pathlib import Path

import apsw
import pytest

from sidecar.domain.eligibility import SkipReason
from sidecar.domain.errors import Code, LedgerError
from sidecar.store import restore as restoring
from sidecar.store.progress import unreported
from sidecar.store.restore import RestoreReport, restore
from tests.support.stores import beside, files_in, key, open_store, record, texts

NOW = 1_767_225_600


def _restore(path: Path, *, forget_unknown: bool = False) -> RestoreReport:
    return restore(path / "b.db", path / "store.db", NOW, unreported, forget_unknown=forget_unknown)


async def _with_backup(folder: Path) -> None:
    """A backup of three turns, and a store in which two came since and the middle one was forgotten."""
    async with open_store(folder / "store.db") as store:
        for number in range(3):
            await record(store, key(f"w{number}"), f"t{number}")
        await store.backup(folder / "b.db", unreported)
        await record(store, key("w3"), "t3")
        await store.forget_turn(key("w1"))


async def test_what_was_forgotten_stays_forgotten(tmp_path: Path) -> None:
    """The backup's turns are back, but for the one that was forgotten since, which a redelivery does not bring back."""
    await _with_backup(tmp_path)
    report = _restore(tmp_path)
    assert (report.rows, report.entries, report.forgotten_again) == (2, 2, 1)
    async with open_store(tmp_path / "store.db") as store:
        assert await texts(store) == ["t0", "t2"]
        assert (await record(store, key("w1"))).skip_reason is SkipReason.FORGOTTEN
        assert (await record(store, key("w3"), "t3")).ordinal == 4


async def test_the_old_store_is_kept_aside(tmp_path: Path) -> None:
    """What was replaced is a whole store under the name that is told, and no working file is left."""
    await _with_backup(tmp_path)
    report = _restore(tmp_path)
    assert {Path(report.aside).name, "store.db"} <= files_in(tmp_path)
    assert not [name for name in files_in(tmp_path) if "restoring" in name or name.endswith(("-wal", "-shm"))]
    async with open_store(Path(report.aside)) as old:
        assert await texts(old) == ["t0", "t2", "t3"]


async def test_a_killed_owner_loses_nothing_aside(tmp_path: Path) -> None:
    """A store whose owner died is replaced with its log taken in: forgotten turns are known from there too."""
    await _with_backup(tmp_path)
    db = apsw.Connection(str(tmp_path / "store.db"))
    db.execute("INSERT INTO forgotten_turns SELECT randomblob(32), 5")
    killed = {name: (tmp_path / name).read_bytes() for name in ("store.db", "store.db-wal")}
    db.close()
    for name, data in killed.items():
        (tmp_path / name).write_bytes(data)
    _restore(tmp_path)
    with beside(tmp_path / "store.db") as restored:
        assert restored.execute("SELECT count(*) FROM forgotten_turns").get == 2


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
async def test_a_log_that_outlived_its_store_steps_aside(tmp_path: Path, suffix: str) -> None:
    """A log whose store is gone is kept under the name that is told, and never played into what was restored."""
    await _with_backup(tmp_path)
    db = apsw.Connection(str(tmp_path / "store.db"))
    db.pragma("journal_mode", "wal" if suffix == "-wal" else "delete")
    db.execute("PRAGMA cache_size = 1; BEGIN; DELETE FROM conversation_sessions")
    db.execute("CREATE TABLE filler AS SELECT randomblob(50000)")
    if suffix == "-wal":
        db.execute("COMMIT")
    log = (tmp_path / f"store.db{suffix}").read_bytes()
    assert log
    db.close()
    (tmp_path / "store.db").unlink()
    (tmp_path / f"store.db{suffix}").write_bytes(log)
    report = _restore(tmp_path, forget_unknown=True)
    assert (report.rows, Path(report.aside).name) == (3, f"store.db.replaced-1{suffix}")
    assert (tmp_path / f"store.db.replaced-1{suffix}").read_bytes() == log
    async with open_store(tmp_path / "store.db") as store:
        assert await texts(store) == ["t0", "t1", "t2"]


async def test_an_unreadable_store_needs_a_word(tmp_path: Path) -> None:
    """Where the old store cannot say what was forgotten, nothing happens without the flag."""
    await _with_backup(tmp_path)
    (tmp_path / "store.db").write_bytes(b"damaged" * 1_000)
    with pytest.raises(LedgerError, match="--forget-unknown"):
        _restore(tmp_path)
    assert (tmp_path / "store.db").read_bytes() == b"damaged" * 1_000
    assert _restore(tmp_path, forget_unknown=True).rows == 3
    async with open_store(tmp_path / "store.db") as store:
        assert await texts(store) == ["t0", "t1", "t2"]


async def test_a_missing_store_needs_a_word(tmp_path: Path) -> None:
    """A node that lost its store may have forgotten turns that nobody knows of any more."""
    await _with_backup(tmp_path)
    (tmp_path / "store.db").unlink()
    with pytest.raises(LedgerError, match=r"it is not there.*--forget-unknown"):
        _restore(tmp_path)
    report = _restore(tmp_path, forget_unknown=True)
    assert (report.rows, report.aside) == (3, "")


async def test_a_damaged_backup_replaces_nothing(tmp_path: Path) -> None:
    """A backup that does not pass the check, or is none, is refused, and the store is as it was."""
    await _with_backup(tmp_path)
    with beside(tmp_path / "b.db") as db:
        db.execute("UPDATE conversation_sessions SET entry = x'00' WHERE work_key = 'w0'")
    with pytest.raises(LedgerError, match="does not pass the check"):
        _restore(tmp_path)
    (tmp_path / "b.db").unlink()
    with pytest.raises(LedgerError, match="is no file"):
        _restore(tmp_path)
    async with open_store(tmp_path / "store.db") as store:
        assert await texts(store) == ["t0", "t2", "t3"]


async def test_a_newer_backup_is_refused(tmp_path: Path) -> None:
    """A backup of a later program is refused as such."""
    await _with_backup(tmp_path)
    with beside(tmp_path / "b.db") as db:
        db.execute("INSERT INTO schema_migrations VALUES (9999, 'later', 'x', 0)")
    with pytest.raises(LedgerError) as refused:
        _restore(tmp_path)
    assert refused.value.code is Code.STORE_NEWER


async def test_a_restore_that_was_killed_is_begun_anew(tmp_path: Path) -> None:
    """What a killed restore left beside the store is in nobody's way."""
    await _with_backup(tmp_path)
    for suffix in ("", "-wal", "-journal"):
        (tmp_path / f".store.db.restoring{suffix}").write_bytes(b"half")
    assert _restore(tmp_path).rows == 2
    assert not [name for name in files_in(tmp_path) if "restoring" in name]


@pytest.mark.parametrize("step", ["_copy", "_prepare", "_verify", "_swap"])
async def test_a_failure_at_any_step_leaves_the_old_store(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails before the last rename, the old store is whole in its place and no working file is left."""
    await _with_backup(tmp_path)

    def fails(*_: object) -> None:
        raise LedgerError(Code.STORE_IO, "the disk failed")

    monkeypatch.setattr(restoring, step, fails)
    with pytest.raises(LedgerError, match="the disk failed"):
        _restore(tmp_path)
    assert not [name for name in files_in(tmp_path) if "restoring" in name]
    async with open_store(tmp_path / "store.db") as store:
        assert await texts(store) == ["t0", "t2", "t3"]
