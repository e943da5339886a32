"""A real store in a folder of the test's, and a look past it at its files."""

import asyncio
import itertools
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import apsw
from msgspec.structs import replace

from sidecar.domain.block import Kept
from sidecar.domain.eligibility import Conversation, TurnKey
from sidecar.domain.entry import Entry
from sidecar.store.append import Appended
from sidecar.store.history import Reading
from sidecar.store.store import Store

SEAT = "scout"
CONVERSATION = "jira:POC-7"
PLENTY = 500

_PUT = "UPDATE conversation_sessions SET {column} = ? WHERE id = ?"

_entry_ids = itertools.count(1)

_PLAIN = Entry(
    turn_id="0a1b2c3d-0001",
    completed_at="2026-01-01T00:00:00Z",
    trigger="Please look at the gauge.",
    intent="",
    calls=(),
    delivered=True,
    final_text="The gauge reads 4 bar.",
    completed_work="",
    blocked_on="",
    decision="done",
)


class Clock:
    """Seconds since 1970 that a test sets."""

    def __init__(self, now: int = 1_767_225_600) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def key(work_key: str, conversation: str = CONVERSATION, seat: str = SEAT) -> TurnKey:
    """A turn of the usual conversation."""
    return TurnKey(Conversation(seat, conversation), work_key)


def entry(text: str = _PLAIN.final_text, **changes: Any) -> Entry:
    """A small finished turn with this final text."""
    return replace(_PLAIN, final_text=text, **changes)


@asynccontextmanager
async def open_store(path: Path, *, clock: Clock | None = None, vfs: str | None = None) -> AsyncIterator[Store]:
    """An open store, closed at the end. What its opening began is over, where nothing holds that up: a test that counts
    syncs or fails one has its own alone."""
    store = Store(path, clock=clock or Clock(), vfs=vfs)
    store.start()
    try:
        await store.opened()
        assert store._erasing is not None
        await asyncio.wait({store._erasing}, timeout=0.3)
        yield store
    finally:
        await store.close()


async def record(store: Store, turn: TurnKey, text: str = "text", *, max_entries: int = PLENTY) -> Appended:
    """Record a turn under an entry id that no other has."""
    return await store.append(turn, entry(text), f"id-{next(_entry_ids)}", max_entries)


async def read(store: Store, turn: TurnKey | None = None, *, max_entries: int = PLENTY) -> Reading:
    """What History would find."""
    return await store.history(turn or key(""), max_entries, _same)


async def texts(store: Store, turn: TurnKey | None = None, *, max_entries: int = PLENTY) -> list[str]:
    """The final texts of a conversation, oldest first."""
    kept: Kept = (await read(store, turn, max_entries=max_entries)).kept
    return [each.final_text for each in kept.entries]


@contextmanager
def beside(path: Path) -> Iterator[apsw.Connection]:
    """Another program's connection to the store's file."""
    db = apsw.Connection(str(path))
    try:
        db.set_busy_timeout(2_000)
        yield db
    finally:
        db.close()


@contextmanager
def pinned(path: Path) -> Iterator[apsw.Connection]:
    """Another program's reader that holds a snapshot open until `COMMIT` or the end."""
    with beside(path) as db:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM conversation_sessions").fetchall()
        yield db


def put_in(path: Path, row_id: int, column: str, value: object) -> None:
    """Put a value of whichever type into a row of a closed store, as a damaged page may hold it."""
    with beside(path) as db:
        strict: str = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'conversation_sessions'").get
    _let_stand(path, strict.replace("NOT NULL", "").replace(") STRICT", ")"))
    with beside(path) as db:
        db.pragma("ignore_check_constraints", True)
        db.execute(_PUT.format(column=column), (value, row_id))
    _let_stand(path, strict)


def _let_stand(path: Path, schema: str) -> None:
    with beside(path) as db:
        db.pragma("writable_schema", True)
        db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'conversation_sessions'", (schema,))


def traces(path: Path, needle: bytes) -> dict[str, int]:
    """In which of the store's files the bytes stand, and how often.

    Another process takes the look: to open and close a live store by other means would drop this process's locks on it.
    """

    look = (
        "import pathlib, sys\n"
        "store, needle = pathlib.Path(sys.argv[1]), bytes.fromhex(sys.argv[2])\n"
        "for file in filter(pathlib.Path.is_file, sorted(store.parent.glob(store.name + '*'))):\n"
        "    print(file.name, file.read_bytes().count(needle))\n"
    )
    found = subprocess.run(
        [sys.executable, "-S", "-c", look, str(path), needle.hex()], check=True, capture_output=True, text=True
    )
    counts = (line.rsplit(" ", 1) for line in found.stdout.splitlines())
    return {name: int(count) for name, count in counts if int(count)}


def files_in(folder: Path) -> set[str]:
    """The names of the files in a folder."""
    return {file.name for file in folder.iterdir()}


async def no_traces(path: Path, needle: bytes) -> bool:
    """Whether the bytes stand in none of the store's files."""
    return not await asyncio.to_thread(traces, path, needle)


def _same(reading: Reading) -> Reading:
    return reading
