"""Numbered migrations: each runs in one transaction with the row that says so."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import apsw

from sidecar.domain.errors import Code, LedgerError
from sidecar.store.connection import APPLICATION_ID
from sidecar.store.transaction import Kind, transaction

_LEDGER: Final = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  number     INTEGER PRIMARY KEY,
  name       TEXT    NOT NULL,
  checksum   TEXT    NOT NULL,  -- SHA-256 of the migration's text, lower-case hex
  applied_at INTEGER NOT NULL   -- seconds since 1970, UTC
) STRICT
"""


_SCHEMA: Final = "SELECT type, name, tbl_name, sql FROM sqlite_schema"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema, named as its file: `0001_conversation_sessions.sql`."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def shipped() -> list[Migration]:
    """The migrations of this program, by number."""
    files = (file for file in _folder().iterdir() if file.name.endswith(".sql"))
    return sorted((_read(file) for file in files), key=lambda migration: migration.number)


def missing(db: apsw.Connection, migrations: Sequence[Migration]) -> list[Migration]:
    """The migrations that the store still lacks. Reads only.

    Raises `LedgerError`: STORE_NEWER if a later program has been here; STORE_CORRUPT if the file is another program's,
    or if what it was built from is not what this program would have built it from.
    """
    _refuse_foreign(db)
    applied = _applied(db)
    known = {migration.number: migration for migration in migrations}
    if newer := [number for number in applied if number > max(known, default=0)]:
        raise LedgerError(
            Code.STORE_NEWER,
            f"the store has schema {max(newer)}, this program knows {max(known, default=0)}; run the newer program",
        )
    for number, checksum in applied.items():
        if number not in known or known[number].checksum != checksum:
            raise LedgerError(Code.STORE_CORRUPT, f"migration {number} is not the one that the store was built with")
    return [migration for migration in migrations if migration.number not in applied]


def require_store(db: apsw.Connection) -> None:
    """Raises `LedgerError` STORE_CORRUPT for a file in which there is no store, an empty one included."""
    if len(missing(db, shipped())) == len(shipped()):
        raise LedgerError(Code.STORE_CORRUPT, "the file holds no store; name the store's file or a backup of it")


def migrate(db: apsw.Connection, migrations: Sequence[Migration], now: int) -> None:
    """Apply the migrations in their order, each whole or not at all. `now` is seconds since 1970, UTC."""
    for migration in migrations:
        _apply(db, migration, now)


def require_schema(db: apsw.Connection, migrations: Sequence[Migration]) -> None:
    """Raises `LedgerError` STORE_CORRUPT where a table or an index is not what the migrations make.

    A damaged schema would make each statement fail as if it were wrong, or hide rows behind an index of another shape.
    """
    fresh = apsw.Connection(":memory:")
    try:
        migrate(fresh, migrations, 0)
        lacking = set(fresh.execute(_SCHEMA)) - set(db.execute(_SCHEMA))
    finally:
        fresh.close()
    if lacking:
        raise LedgerError(Code.STORE_CORRUPT, "the store's schema is damaged; restore it from a backup")


def _refuse_foreign(db: apsw.Connection) -> None:
    tables = db.execute("SELECT count(*) FROM sqlite_schema").get
    if tables and db.pragma("application_id") != APPLICATION_ID:
        raise LedgerError(
            Code.STORE_CORRUPT,
            "the store's file is another program's database, and was left as it is; name another file",
        )


def _applied(db: apsw.Connection) -> dict[int, str]:
    if not db.table_exists(None, "schema_migrations"):
        return {}
    return dict(db.execute("SELECT number, checksum FROM schema_migrations"))


def _apply(db: apsw.Connection, migration: Migration, now: int) -> None:
    with transaction(db, Kind.IMMEDIATE):
        db.pragma("application_id", APPLICATION_ID)
        db.execute(_LEDGER)
        db.execute(migration.sql)
        db.execute(
            "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
            (migration.number, migration.name, migration.checksum, now),
        )


def _read(file: Traversable) -> Migration:
    found = re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name)
    if found is None:
        raise ValueError(f"a migration is named like 0001_what_it_does.sql, not {file.name}")
    return Migration(int(found[1]), found[2], file.read_text(encoding="utf-8"))


def _folder() -> Traversable:
    """In a wheel the migrations are part of the package, in a checkout they stand at its top level."""
    packaged = resources.files("sidecar") / "_migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "migrations"
