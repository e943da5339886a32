"""The engine's own state on disk: one SQLite file, so that a crash loses nothing and changes nothing.

Take from it: the ledger remembers finished turns and nothing else. What is waiting, suspended or not delivered is
yours.
"""

import sqlite3
from pathlib import Path
from typing import Final

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS batches (
    number    INTEGER PRIMARY KEY,
    partition TEXT NOT NULL,
    work_key  TEXT NOT NULL,
    saved     TEXT,              -- a suspended turn, as `save` wrote it, with the engine's own part
    verdict   INTEGER,           -- what a person said to it
    over      INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS triggers (
    trigger_id TEXT PRIMARY KEY,
    place      INTEGER NOT NULL, -- the order in which they came
    partition  TEXT NOT NULL,
    body       TEXT NOT NULL,
    batch      INTEGER REFERENCES batches
);
CREATE TABLE IF NOT EXISTS outgoing (
    work_key     TEXT PRIMARY KEY,
    conversation TEXT NOT NULL,
    text         TEXT NOT NULL,  -- JSON, since a model may write what no UTF-8 file can hold
    state        TEXT NOT NULL
);
"""


def open_state(path: Path) -> sqlite3.Connection:
    """The file, made where it is missing. Each statement is its own durable transaction unless one is opened.

    Its calls are short and run on the event loop; an engine with much traffic would give them a thread.
    """
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.executescript(_SCHEMA)
    return db
