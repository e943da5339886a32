"""What is cleared on the way to the file is never anything that SQLite reads."""

import random
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.store.remnants import without_remnants


@pytest.mark.parametrize("page_bytes", [512, 4096, 65_536])
@pytest.mark.parametrize("seed", range(3))
def test_a_file_stays_what_it_was(tmp_path: Path, page_bytes: int, seed: int) -> None:
    """A file of tables, indexes, overflows, free pages and pointer maps reads the same once all its pages went through,
    and nothing that was deleted is left in it."""
    path = tmp_path / "some.db"
    _churn(path, page_bytes, random.Random(seed))
    before = _contents(path)
    data = path.read_bytes()
    pages = [without_remnants(data[at : at + page_bytes], at) for at in range(0, len(data), page_bytes)]
    path.write_bytes(b"".join(pages))
    assert _contents(path) == before
    assert b"needle" not in path.read_bytes()


def _churn(path: Path, page_bytes: int, chance: random.Random) -> None:
    db = apsw.Connection(str(path))
    for pragma in (f"page_size = {page_bytes}", "auto_vacuum = incremental", "secure_delete = on", "synchronous = off"):
        db.execute(f"PRAGMA {pragma}").fetchall()
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB); CREATE INDEX i ON t (a, b)")
    with db:
        for number in range(1_500):
            gone = chance.random() < 0.5
            key = f"{'needle' if gone else 'kept'}-{chance.randrange(10**6)}"
            size = chance.randrange(chance.choice([20, 200, 2_000]))
            db.execute("INSERT INTO t VALUES (?, ?, ?)", (None, key, b"needle" * size if gone else b"kept" * size))
            if number % 7 == 0:
                db.execute("DELETE FROM t WHERE id % 3 = ? AND a LIKE 'needle%'", (number % 3,))
    with db:
        db.execute("DELETE FROM t WHERE a LIKE 'needle%'")
    db.close()


def _contents(path: Path) -> list[object]:
    db = apsw.Connection(str(path))
    try:
        assert db.execute("PRAGMA integrity_check").get == "ok"
        return [*db.execute("SELECT * FROM t ORDER BY id"), db.pragma("freelist_count")]
    finally:
        db.close()


@given(st.binary(max_size=3_000), st.integers(0, 4))
def test_anything_at_all_keeps_its_size(data: bytes, place: int) -> None:
    """Whatever is written, as much is written."""
    assert len(without_remnants(data, place * max(len(data), 1))) == len(data)
