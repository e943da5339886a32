"""The commands on a store that nobody owns: what reads changes nothing, what writes owns the store meanwhile."""

import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from sidecar.config.settings import Settings
from sidecar.domain.errors import Code, LedgerError
from sidecar.domain.retention import TrimBound
from sidecar.services.administration import Answer, forget, sweep
from sidecar.services.maintenance import Maintenance
from sidecar.services.record import Record
from sidecar.store.files import back_up_file, check_file, count_file, require_file
from sidecar.store.lock import Lock
from sidecar.store.progress import Report
from sidecar.store.restore import restore
from sidecar.store.store import Store

T = TypeVar("T")


class Owned(Exception):
    """A process owns the store, and did not answer."""


def check_alone(store: Path, report: Report) -> Answer:
    """Check a store, or a backup of one."""
    found = _unowned(store, lambda: check_file(store, report))
    return {"sound": found.sound, **asdict(found)}


def stats_alone(store: Path) -> Answer:
    """Count."""
    totals, sizes = _unowned(store, lambda: count_file(store))
    return {"store": {"open": False}, "totals": asdict(totals), "sizes": asdict(sizes)}


def backup_alone(store: Path, to: Path, report: Report) -> Answer:
    """Copy, as the store stands."""
    return asdict(_unowned(store, lambda: back_up_file(store, to, report)))


def restore_alone(store: Path, backup: Path, report: Report, *, forget_unknown: bool) -> Answer:
    """Put a backup in the store's place. Raises `Owned` while anybody owns it."""
    store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(store):
        return asdict(restore(backup, store, int(time.time()), report, forget_unknown=forget_unknown))


async def sweep_alone(settings: Settings, arguments: Mapping[str, Any]) -> Answer:
    """Sweep. Alone there is no earlier look at the clock, so nothing goes by retention unless the clock is trusted."""
    async with _opened(settings) as store:
        return await sweep(_maintenance(settings, store), arguments)


async def forget_alone(settings: Settings, arguments: Mapping[str, Any]) -> Answer:
    """Erase."""
    async with _opened(settings) as store:
        return await forget(_record(settings, store), arguments)


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[Store]:
    path = settings.sidecar.store_file
    _unowned(path, lambda: require_file(path))  # what is no store is not made one
    _require_access(path, os.W_OK, "written")
    store = Store(path, clock=lambda: int(time.time()))
    try:
        await store.open_once()
        yield store
    finally:
        await store.close()


def _record(settings: Settings, store: Store) -> Record:
    session = settings.turn_engine.conversation_session
    return Record(store, lambda: session, lambda: str(uuid.uuid4()), TrimBound(session.max_entries))


def _maintenance(settings: Settings, store: Store) -> Maintenance:
    session = settings.turn_engine.conversation_session
    return Maintenance(
        store,
        lambda: session,
        TrimBound(session.max_entries),
        interval_s=settings.sidecar.sweep.interval_s,
        clock=lambda: int(time.time()),
        uptime=time.monotonic,
    )


def _unowned(store: Path, work: Callable[[], T]) -> T:
    """Do what only reads. Where there is no lock file nobody owns the store, and none is made."""
    _require_store(store)
    if not _lock_file(store).exists():
        return work()
    with _locked(store):
        return work()


@contextmanager
def _locked(store: Path) -> Iterator[None]:
    lock = Lock(_lock_file(store))
    try:
        if not lock.acquire():
            raise Owned
    except OSError as error:
        raise LedgerError(
            Code.STORE_UNAVAILABLE,
            f"{_lock_file(store)} cannot be opened ({error.strerror}); run this as the sidecar's user",
        ) from error
    with lock:
        yield


def _lock_file(store: Path) -> Path:
    return store.with_name(store.name + ".lock")


def _require_store(store: Path) -> None:
    try:
        is_there = store.is_file()
    except OSError as error:
        raise LedgerError(
            Code.STORE_UNAVAILABLE, f"{store} cannot be looked at ({error.strerror}); run this as the sidecar's user"
        ) from error
    if not is_there:
        raise LedgerError(Code.STORE_UNAVAILABLE, f"there is no store at {store}; name it with --store or --config")
    _require_access(store, os.R_OK, "read")


def _require_access(store: Path, mode: int, done: str) -> None:
    if not os.access(store, mode):
        raise LedgerError(Code.STORE_UNAVAILABLE, f"{store} cannot be {done} by this user; run this as the sidecar's")
