"""Power is lost at a random operation of the disk: what was not synced is gone, or there in part."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from unittest import mock

import apsw

from sidecar.config.settings import ConversationSession
from sidecar.domain.calls import CallKind, SuppliedCall, keep
from sidecar.domain.eligibility import Disposition, RunEnd
from sidecar.domain.errors import LedgerError
from sidecar.domain.retention import TrimBound
from sidecar.services.record import CompletedTurn, Fit, Record
from sidecar.store import connection, migrate
from sidecar.store.files import check_file
from sidecar.store.store import Store
from tests.support.stores import Clock, entry
from tests.support.volatile_disk import VolatileDisk
from tests.torture.auditor import LONG, REWRITE, WORKS, Answer, Auditor, Turn, Unanswered, read_standing
from tests.torture.experiment import Experiment, Finding, Say, Scale

_CALLERS: Final = 8

#: What the store is at when the power goes.
_MOMENTS: Final = ("appends alone", "a sweep", "a backup", "a checkpoint")
_NO_SYNCS: Final = "appends without syncs"

_CALL: Final = SuppliedCall("log", f'{{"note":"{LONG}"}}', CallKind.WRITE)

_entry_ids: Final = itertools.count(1)


class InProcess:
    """The ledger by its service, on a store in this process."""

    def __init__(self, store: Store) -> None:
        session = ConversationSession()
        self._record = Record(store, lambda: session, lambda: f"id-{next(_entry_ids)}", TrimBound(session.max_entries))

    async def append(self, turn: Turn) -> Answer:
        kept = entry(turn.text, delivered=False, calls=(keep(_CALL),))
        with _unanswered():
            answer = await self._record.append(turn.key, RunEnd.COMPLETED, CompletedTurn(kept, (_CALL,)))
        orders = [str(order.order_id) for order in answer.orders if order.text == LONG]
        disposition = "forgotten" if answer.disposition is Disposition.SKIPPED else answer.disposition.value
        return Answer(disposition, answer.entry_id, orders[0] if orders else "")

    async def settle(self, turn: Turn) -> None:
        with _unanswered():
            await self._record.settle(turn.key)

    async def fit(self, turn: Turn) -> None:
        with _unanswered():
            await self._record.fit(turn.key.conversation, [Fit(turn.order_id, LONG, REWRITE)])

    async def forget(self, turn: Turn) -> None:
        with _unanswered():
            await self._record.forget(turn.key)


class _unanswered:  # noqa: N801  a context manager that reads as a function
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, LedgerError):
            raise Unanswered from error


@asynccontextmanager
async def _opened(path: Path, vfs: str | None = None) -> AsyncIterator[Store]:
    store = Store(path, clock=Clock(), vfs=vfs)
    store.start()
    try:
        yield store
    finally:
        with suppress(apsw.Error, LedgerError):  # of a disk that is dead
            await store.close()


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """Losses during work and upkeep, during migrations, and with syncs left out."""
    chance = random.Random(scale.seed)
    work = await _losses(folder / "work", 12 if scale.quick else 300, _MOMENTS, chance, say)
    migrations = await _migrations(folder / "migrations", 8 if scale.quick else 120, chance, say)
    with mock.patch.object(connection, "_sync_each_commit", _sync_nothing):
        unsafe = await _losses(folder / "unsafe", 6 if scale.quick else 60, (_NO_SYNCS,), chance, say)
    lost = Counter(unsafe.broken)["an acknowledged turn is lost"]
    return [
        replace(work, promise="What was acknowledged before a power loss is there after it, once, verbatim, in order"),
        migrations,
        Finding(
            "This harness sees a loss where there is one: with `synchronous=OFF`",
            f"{unsafe.figures.partition(';')[0]}; {lost} acknowledged turns were lost",
            [] if lost else ["nothing was lost without syncs: the harness proves nothing"],
        ),
    ]


def _sync_nothing(db: apsw.Connection) -> None:
    db.pragma("synchronous", "off")


async def _losses(folder: Path, losses: int, moments: Sequence[str], chance: random.Random, say: Say) -> Finding:
    acknowledged: Counter[str] = Counter()
    broken: list[str] = []
    in_flight = 0
    met: Counter[str] = Counter()
    for number in range(losses):
        place = folder / str(number)
        moment = chance.choice(moments)
        # A Forget syncs all that was before it, whatever the setting.
        works = {"append": 1} if moment == _NO_SYNCS else WORKS
        auditor = Auditor(_CALLERS, chance.randrange(2**32), works)
        await _lose(place, auditor, moment, chance)
        met[moment] += 1
        acknowledged += auditor.figures.acknowledged
        in_flight += auditor.figures.in_flight
        broken += auditor.figures.broken
        if number % 50 == 49:
            say(f"{number + 1} of {losses} losses")
    effects = ", ".join(f"{count} {work}s" for work, count in sorted(acknowledged.items()))
    during = ", ".join(f"{count} during {moment}" for moment, count in sorted(met.items()))
    return Finding("", f"{losses} losses ({during}); {effects} acknowledged; {in_flight} calls in flight", broken)


async def _lose(place: Path, auditor: Auditor, moment: str, chance: random.Random) -> None:
    """Work until the power goes, at some operation; then start again from what the disk held."""
    (place / "before").mkdir(parents=True)
    (place / "after").mkdir()
    disk = VolatileDisk(chance.randrange(2**32))
    try:
        async with _opened(place / "before" / "store.db", disk.name) as store:
            await store.opened()
            disk.lose_at(chance.randint(50, 3_000))
            upkeep = asyncio.ensure_future(_upkeep(store, moment, place, disk))
            await auditor.drive(InProcess(store))
            await upkeep
    finally:
        disk.close()
    disk.restore_into(place / "after")
    await _audit(place / "after" / "store.db", auditor)


async def _upkeep(store: Store, moment: str, place: Path, disk: VolatileDisk) -> None:
    """The same work of maintenance over and over, until the power goes."""
    for number in itertools.count():
        with suppress(LedgerError):
            if moment == "a sweep":
                await store.sweep(1, 20)
            elif moment == "a backup":
                await store.backup(place / f"backup-{number}.db", lambda _: None)
            elif moment == "a checkpoint":
                await store.finish_erasure()
        if disk.lost.is_set():
            return
        await asyncio.sleep(0.002)


async def _audit(path: Path, auditor: Auditor) -> None:
    async with _opened(path) as store:
        await store.opened()
    found = check_file(path, lambda _: None)
    if not found.sound:
        auditor.figures.broken.append(f"the check found {found}")
    standing = read_standing(path, auditor.turns)
    auditor.audit(standing)
    async with _opened(path) as store:
        await store.opened()
        await auditor.redeliver(InProcess(store), standing, samples=5)


async def _migrations(folder: Path, losses: int, chance: random.Random, say: Say) -> Finding:
    """From nothing, and from a store of each earlier version with rows in it, at every kind of moment."""
    broken = []
    cut = 0
    versions = range(len(migrate.shipped()))
    for number in range(losses):
        place = folder / str(number)
        auditor = Auditor(2, number)
        cut += await _lose_a_migration(place, versions[number % len(versions)], auditor, chance)
        broken += auditor.figures.broken
    say(f"{losses} migrations")
    return Finding(
        "A migration that a power loss cuts off is done whole by the next start, and costs no row",
        f"{losses} migrations from {len(versions)} versions, {cut} of them cut off",
        broken,
    )


async def _lose_a_migration(place: Path, version: int, auditor: Auditor, chance: random.Random) -> bool:
    for name in ("before", "after"):
        (place / name).mkdir(parents=True)
    path = place / "before" / "store.db"
    turns = 0 if version == 0 else 5
    if version:
        await _old_store(path, version, auditor, turns)
    disk = VolatileDisk(chance.randrange(2**32))
    disk.lose_at(chance.randint(1, 90))
    try:
        async with _opened(path, disk.name) as store:
            waiting = asyncio.ensure_future(store.opened())
            while not (waiting.done() or disk.lost.is_set()):  # noqa: ASYNC110  the disk is on other threads
                await asyncio.sleep(0.001)
            was_cut = not waiting.done()
            waiting.cancel()
            await asyncio.wait({waiting})
            disk.lose_at(0)
            with suppress(LedgerError):
                await store.finish_erasure()
    finally:
        disk.close()
    disk.restore_into(place / "after")
    await _audit(place / "after" / "store.db", auditor)
    return was_cut


async def _old_store(path: Path, version: int, auditor: Auditor, turns: int) -> None:
    """A store as the program of an earlier version left it, with turns in it."""
    old = migrate.shipped()[:version]
    rows: Callable[[], Sequence[migrate.Migration]] = lambda: old  # noqa: E731
    with mock.patch("sidecar.store.database.shipped", rows):
        async with _opened(path) as store:
            await store.opened()
            driving = asyncio.ensure_future(auditor.drive(InProcess(store)))
            while sum(auditor.figures.acknowledged.values()) < turns:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            await store.close()
            await driving
    standing = read_standing(path, auditor.turns)
    auditor.audit(standing)


EXPERIMENT: Final = Experiment("power", "power lost at random disk operations, with torn writes", run)
