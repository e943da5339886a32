"""Stores as earlier programs and earlier times left them: fewer migrations, rows past retention."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from sidecar.domain.eligibility import TurnKey
from sidecar.store.append import append, new_row
from sidecar.store.connection import open_writer, prepare_to_write
from sidecar.store.migrate import migrate, shipped
from sidecar.store.transaction import Kind, transaction
from tests.support.stores import entry

_DAY_S: Final = 24 * 60 * 60

#: Safely past the default retention.
_OLD_DAYS: Final = 40

#: So many that nothing is trimmed.
_ALL: Final = 1_000_000


def old_store(path: Path, version: int, turns: Iterable[tuple[TurnKey, str, str]], now: int) -> None:
    """A store of that schema version, each turn (key, final text, entry id) recorded 40 days before `now`."""
    created_at = now - _OLD_DAYS * _DAY_S
    db = open_writer(path)
    try:
        prepare_to_write(db)
        migrate(db, shipped()[:version], created_at)
        with transaction(db, Kind.IMMEDIATE):
            for key, text, entry_id in turns:
                append(db, new_row(key, entry(text), entry_id, created_at), _ALL)
    finally:
        db.close()
