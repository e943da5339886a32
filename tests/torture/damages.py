"""What can happen to a store's files while nobody looks: each damage is a function that does it."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw

from tests.support.stores import put_in

#: Damages a store's files. Beside the store lie `log/`, its files as a kill leaves them, and `earlier/`, the file as it
#: was some turns before.
Damage = Callable[[Path, random.Random], None]

_PAGE_BYTES: Final = 4096

_LARGE: Final = 2**63 - 1


def _header(store: Path, chance: random.Random) -> None:
    _overwrite(store, chance.randrange(100), chance.randbytes(chance.randint(1, 16)))


def _some_bytes(store: Path, chance: random.Random) -> None:
    size = store.stat().st_size
    for _ in range(chance.randint(1, 40)):
        _overwrite(store, chance.randrange(100, size), chance.randbytes(chance.randint(1, 64)))


def _a_bit(store: Path, chance: random.Random) -> None:
    place = chance.randrange(store.stat().st_size)
    with store.open("r+b") as file:
        file.seek(place)
        [byte] = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1 << chance.randrange(8)]))


def _a_page(store: Path, chance: random.Random) -> None:
    page = chance.randrange(store.stat().st_size // _PAGE_BYTES)
    _overwrite(store, page * _PAGE_BYTES, chance.choice([bytes(_PAGE_BYTES), chance.randbytes(_PAGE_BYTES)]))


def _a_lost_write(store: Path, chance: random.Random) -> None:
    """A page that the disk never wrote, though it said so: the page is sound, and from before."""
    now, before = store.read_bytes(), (store.parent / "earlier" / store.name).read_bytes()
    places = range(0, min(len(now), len(before)), _PAGE_BYTES)
    place = chance.choice([each for each in places if _page(now, each) != _page(before, each)])
    _overwrite(store, place, _page(before, place))


def _a_misplaced_write(store: Path, chance: random.Random) -> None:
    """A page that the disk wrote in another's place."""
    pages = store.read_bytes()
    source, target = chance.sample(range(0, len(pages), _PAGE_BYTES), 2)
    _overwrite(store, target, _page(pages, source))


def _cut(store: Path, chance: random.Random) -> None:
    with store.open("r+b") as file:
        file.truncate(chance.randrange(1, store.stat().st_size))


def _zeros(store: Path, _: random.Random) -> None:
    store.write_bytes(bytes(store.stat().st_size))


def _emptied(store: Path, _: random.Random) -> None:
    store.write_bytes(b"")


def _log_bytes(store: Path, chance: random.Random) -> None:
    log = _with_log(store)
    for _ in range(chance.randint(1, 10)):
        _overwrite(log, chance.randrange(log.stat().st_size), chance.randbytes(chance.randint(1, 64)))


def _log_cut(store: Path, chance: random.Random) -> None:
    log = _with_log(store)
    with log.open("r+b") as file:
        file.truncate(chance.randrange(log.stat().st_size))


def _row_bytes(store: Path, chance: random.Random) -> None:
    place = chance.randrange(200)
    _by_sql(
        store,
        "UPDATE conversation_sessions SET entry = CAST(substr(entry, 1, ?) || x'ff' || substr(entry, ? + 2) AS BLOB)"
        " WHERE id = ?",
        (place, place, _a_row(store, chance)),
    )


def _row_columns(store: Path, chance: random.Random) -> None:
    """What stands beside the entry: no checksum of SQLite's covers it."""
    column, values = chance.choice(
        [
            ("ordinal", (0, -3, 5, _LARGE, _LARGE - 1)),
            ("version", (0, 2, _LARGE)),
            ("trimmed", (1, 7)),
            ("rendered_bytes", (-1, 0, _LARGE)),
            ("created_at", (-1, _LARGE)),
            ("turn_id", ("", "another")),
            ("entry_id", ("", "another")),
            ("work_key", ("", "another")),
            ("conversation_key", ("", "another")),
        ]
    )
    change = f"UPDATE conversation_sessions SET {column} = ? WHERE id = ?"
    _by_sql(store, change, (chance.choice(values), _a_row(store, chance)))


def _row_types(store: Path, chance: random.Random) -> None:
    """A value of another type than its column's, as only a damaged page can hold it."""
    columns = ("agent_handle", "conversation_key", "work_key", "turn_id", "entry_id", "ordinal", "version", "trimmed")
    column = chance.choice((*columns, "rendered_bytes", "entry", "checksum", "created_at"))
    value = chance.choice([1.5, "text", b"bytes", None])
    put_in(store, _a_row(store, chance), column, value)


def _entry_swapped(store: Path, chance: random.Random) -> None:
    """Entry and seal of one row stand in another's, of whichever conversation."""
    _by_sql(
        store,
        "UPDATE conversation_sessions SET (entry, checksum, entry_id, version) ="
        " (SELECT entry, checksum, entry_id, version FROM conversation_sessions WHERE id = ?) WHERE id = ?",
        (_a_row(store, chance), _a_row(store, chance)),
    )


def _row_moved(store: Path, chance: random.Random) -> None:
    """A row stands in another conversation."""
    _by_sql(
        store,
        "UPDATE conversation_sessions SET conversation_key ="
        " (SELECT conversation_key FROM conversation_sessions WHERE id = ?), work_key = 'moved', ordinal = 99"
        " WHERE id = ?",
        (_a_row(store, chance), _a_row(store, chance)),
    )


def _ledger(store: Path, chance: random.Random) -> None:
    change = chance.choice(
        [
            "UPDATE schema_migrations SET checksum = 'x'",
            "DELETE FROM schema_migrations WHERE number = 1",
            "DELETE FROM schema_migrations",
            "UPDATE schema_migrations SET number = number + 100",
            "DROP TABLE schema_migrations",
        ]
    )
    _by_sql(store, change, ())


DAMAGES: Final[dict[str, Damage]] = {
    "the header": _header,
    "random bytes": _some_bytes,
    "a bit": _a_bit,
    "a page": _a_page,
    "a page whose write was lost": _a_lost_write,
    "a page that was written over another": _a_misplaced_write,
    "a file cut short": _cut,
    "a file of zeros": _zeros,
    "an emptied file": _emptied,
    "a row's bytes": _row_bytes,
    "a row's other columns": _row_columns,
    "a row's types": _row_types,
    "an entry in another row's place": _entry_swapped,
    "a row in another conversation": _row_moved,
    "the ledger of migrations": _ledger,
}

#: To SQLite these look like a power loss: the log counts up to there.
LOG_DAMAGES: Final[dict[str, Damage]] = {"bytes of the log": _log_bytes, "a log cut short": _log_cut}

#: There is nothing random in them.
ALWAYS_THE_SAME: Final = frozenset({"a file of zeros", "an emptied file"})


def _page(file: bytes, place: int) -> bytes:
    return file[place : place + _PAGE_BYTES]


def _overwrite(file: Path, place: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(data)


def _with_log(store: Path) -> Path:
    """Put the files as a kill leaves them in the place of the closed store."""
    for suffix in ("", "-wal"):
        shutil.copy(store.parent / "log" / f"{store.name}{suffix}", store.parent)
    return store.with_name(f"{store.name}-wal")


def _a_row(store: Path, chance: random.Random) -> int:
    db = apsw.Connection(str(store))
    try:
        row: int = chance.choice([number for (number,) in db.execute("SELECT id FROM conversation_sessions")])
        return row
    finally:
        db.close()


def _by_sql(store: Path, change: str, values: tuple[object, ...]) -> None:
    db = apsw.Connection(str(store))
    try:
        db.pragma("ignore_check_constraints", True)
        db.execute(change, values)
    finally:
        db.close()
