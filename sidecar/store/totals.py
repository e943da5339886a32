"""Totals of a store, and the sizes of its files. Counts and bytes; never a key, never a word of an entry."""

import os
from dataclasses import dataclass
from pathlib import Path

import apsw

from sidecar.store.transaction import Kind, transaction


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts of one moment. `oldest_at` is when the oldest row came, in seconds since 1970 (UTC); None without rows."""

    entries: int
    trimmed: int
    conversations: int
    seats: int
    forgotten: int
    oldest_at: int | None
    schema: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes. `free_bytes` of the store's file are on free pages, which appends use up before the file grows.

    The disk's figures are those of the volume that holds the store, as far as this process may use it.
    """

    store_bytes: int
    log_bytes: int
    disk_free_bytes: int
    disk_total_bytes: int
    free_bytes: int = 0


def read_totals(db: apsw.Connection) -> Totals:
    """Count. It walks the keys of all rows: seconds for tens of millions, so on a connection of its own."""
    with transaction(db, Kind.DEFERRED):
        kept, trimmed = db.execute(
            "SELECT coalesce(sum(trimmed = 0), 0), coalesce(sum(trimmed = 1), 0) FROM conversation_sessions"
        ).get
        [conversations] = db.execute(
            "SELECT count(*) FROM (SELECT DISTINCT agent_handle, conversation_key FROM conversation_sessions)"
        ).fetchone() or [0]
        [seats] = db.execute(
            "SELECT count(*) FROM (SELECT DISTINCT agent_handle FROM conversation_sessions)"
        ).fetchone() or [0]
        return Totals(
            entries=kept,
            trimmed=trimmed,
            conversations=conversations,
            seats=seats,
            forgotten=db.execute("SELECT count(*) FROM forgotten_turns").get,
            oldest_at=db.execute("SELECT CAST(min(created_at) AS INTEGER) FROM conversation_sessions").get,
            schema=db.execute("SELECT max(number) FROM schema_migrations").get,
        )


def read_sizes(path: Path) -> Sizes:
    """What the files take, without opening one: to close it again would drop SQLite's locks. Raises `OSError`."""
    disk = os.statvfs(path.parent)
    return Sizes(
        store_bytes=path.stat().st_size,
        log_bytes=_size(path.with_name(path.name + "-wal")),
        disk_free_bytes=disk.f_bavail * disk.f_frsize,
        disk_total_bytes=disk.f_blocks * disk.f_frsize,
    )


def free_bytes(db: apsw.Connection) -> int:
    """Bytes on pages that appends will use before the file grows."""
    free: int = db.pragma("freelist_count") * db.pragma("page_size")
    return free


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
