"""Power is lost at a random operation of the disk: what was not synced is gone, or there in part."""

import asyncio
import itertools
import logging
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final
from unittest import mock

import apsw

from sidecar.config.settings import ConversationSession
from sidecar.domain.calls import CallKind, SuppliedCall, keep
from sidecar.domain.eligibility import Disposition, RunEnd
from sidecar.domain.errors import LedgerError
from sidecar.domain.fit import Verdict
from sidecar.domain.retention import TrimBound
from sidecar.services.record import CompletedTurn, Fit, Record
from sidecar.store import backup, connection
from sidecar.store.migrate import shipped
from sidecar.store.settle import SettleOutcome
from sidecar.store.store import Store
from tests.support.stores import Clock, entry
from tests.support.volatile_disk import VolatileDisk
from tests.torture.auditor import KEPT, LONG, REWRITE, WITH_TWINS, Answer, Auditor, Figures, Unanswered
from tests.torture.experiment import Experiment, Finding, Say, Scale
from tests.torture.left import audit_backups, audit_store, prepare_store
from tests.torture.standing import EMPTY, Standing, Turn

_CALLERS: Final = 16

#: Losses of one store, each met by what the last one has left.
_LOSSES_A_STORE: Final = 4

#: Turns past retention in a store that begins with some.
_OLD_TURNS: Final = 200

#: Turns that are sent again after each loss.
_AGAIN: Final = 5

_DAY_S: Final = 24 * 60 * 60

#: What the store is at besides the callers' work when the power goes.
_START: Final = "a start"
_RESTART: Final = "an end and a start"
_MEANWHILE: Final = (_START, "calls alone", "a sweep", "a backup", "the log being moved", _RESTART)

#: Operations, on files whose names end so; the power goes at the nth, where n is this at most.
_Place = tuple[Sequence[str], str, int]

_ANY: Final[_Place] = (("write", "sync", "truncate", "delete"), "", 1_500)
_PLACES: Final[Sequence[_Place]] = (
    _ANY,
    (("sync",), "-wal", 60),
    (("write",), ".db", 60),
    (("sync",), ".db", 5),
    (("truncate", "delete"), "", 4),
)

#: A start has few more operations than these, an end and a start few more than twice as many.
_START_OPERATIONS: Final = 60

#: Seconds after which the power goes in any case.
_PATIENCE_S: Final = 1.0

_CALL: Final = SuppliedCall("log", f'{{"note":"{LONG}"}}', CallKind.WRITE)

#: apsw's Backup.close returns with the exception of a VFS in Python still set, which surfaces as either of these. The
#: sidecar's own backups are written through SQLite's VFS, which sets none.
_OF_A_BACKUPS_CLOSE: Final = (SystemError, apsw.Error)

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

    async def settle(self, turn: Turn) -> bool:
        with _unanswered():
            settled = await self._record.settle(turn.key)
        return settled.outcome in (SettleOutcome.SETTLED, SettleOutcome.ALREADY_REPLY)

    async def fit(self, turn: Turn) -> bool:
        with _unanswered():
            [result] = await self._record.fit(turn.key.conversation, [Fit(turn.order_id, LONG, REWRITE)])
        return result.judgement.verdict is Verdict.ACCEPTED

    async def forget(self, turn: Turn) -> None:
        with _unanswered():
            await self._record.forget(turn.key)


@contextmanager
def _unanswered() -> Iterator[None]:
    try:
        yield
    except LedgerError as error:
        raise Unanswered from error


@dataclass(slots=True)
class _Tally:
    """Over all stores: at what, and at which operation, the power went; the migrations cut off, by version."""

    losses: int = 0
    migrations: Counter[int] = field(default_factory=Counter)
    meanwhile: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    in_part: int = 0
    backups: int = 0
    figures: Figures = field(default_factory=Figures)


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """Losses of stores of each version, and losses with syncs left out."""
    chance = random.Random(scale.seed)
    with _quiet():
        tally = await _losses(folder / "safe", 18 if scale.quick else 600, chance, say, _Victim)
        with mock.patch.object(connection, "_sync_each_commit", _sync_nothing):
            unsafe = await _losses(folder / "unsafe", 3 if scale.quick else 60, chance, say, _Unsafe)
    return [_held(tally), _seen(unsafe)]


def _held(tally: _Tally) -> Finding:
    figures = tally.figures
    during = ", ".join(f"{count} during {what}" for what, count in sorted(tally.meanwhile.items()))
    operations = ", ".join(f"{count} at a {what}" for what, count in tally.operations.most_common())
    cut_off = ", ".join(f"{count} from version {version}" for version, count in sorted(tally.migrations.items()))
    return Finding(
        "What was acknowledged before a power loss is there after it: once, verbatim, in order; a migration that it"
        " cuts off is done whole by the next start; a backup that has its name is whole",
        f"{tally.losses} losses ({during}; {operations}), {tally.in_part} of them with part of what was not synced on"
        f" the disk; migrations cut off: {cut_off or 'none'}; {figures.effects} acknowledged; {figures.in_flight} calls"
        f" in flight, {figures.went_through} of their Appends had gone through; {figures.redelivered} turns sent again;"
        f" {tally.backups} finished backups audited",
        figures.broken,
    )


def _seen(unsafe: _Tally) -> Finding:
    lost = Counter(unsafe.figures.broken)["an acknowledged turn is lost"]
    return Finding(
        "The harness sees a loss where there is one: with `synchronous=OFF`",
        f"{unsafe.losses} losses; {lost} of {unsafe.figures.acknowledged['append']} acknowledged turns were lost",
        [] if lost else ["nothing was lost without syncs: the harness proves nothing"],
    )


def _sync_nothing(db: apsw.Connection) -> None:
    db.pragma("synchronous", "off")


async def _losses(
    folder: Path, losses: int, chance: random.Random, say: Say, kind: "Callable[[Path, random.Random, _Tally], _Victim]"
) -> _Tally:
    tally = _Tally()
    for number in itertools.count():
        place = folder / str(number)
        place.mkdir(parents=True)
        victim = kind(place, chance, tally)
        await victim.live(number % (len(shipped()) + 1), losses)
        tally.figures.add(victim.auditor.figures)
        shutil.rmtree(place)
        if number % 10 == 9:
            say(f"{tally.losses} of {losses} losses")
        if tally.losses >= losses:
            break
    return tally


class _Victim:
    """One store on disks that lose their power one after the other."""

    works: ClassVar[Mapping[str, int]] = WITH_TWINS
    meanwhile: ClassVar[Sequence[str]] = _MEANWHILE
    losses: ClassVar[int] = _LOSSES_A_STORE
    places: ClassVar[Sequence[_Place]] = _PLACES
    #: How often the disk keeps part of what was not synced.
    in_part: ClassVar[float] = 0.7

    def __init__(self, place: Path, chance: random.Random, tally: _Tally) -> None:
        self._place = place
        self._store = place / "store.db"
        self._chance = chance
        self._tally = tally
        self._backups: dict[Path, Sequence[Turn]] = {}
        self._clock = Clock()
        self.auditor = Auditor(_CALLERS, chance.randrange(2**32), self.works)

    async def live(self, version: int, losses: int) -> None:
        """Begin as a store of that version; lose power and start again. A migration is cut off most of the time."""
        prepare_store(self._store, version, _OLD_TURNS, self._clock.now, self.auditor)
        standing = EMPTY
        for number in range(min(self.losses, losses - self._tally.losses)):
            migrates = number == 0 and version < len(shipped()) and _START in self.meanwhile
            meanwhile = _START if migrates and self._chance.random() < 0.8 else self._chance.choice(self.meanwhile)
            cut_off = await self._lose(meanwhile, standing)
            if migrates and cut_off:
                self._tally.migrations[version] += 1
            standing = await asyncio.to_thread(self._audit, standing)
            if self.auditor.figures.broken:  # what comes of that is no news
                return

    async def _lose(self, meanwhile: str, standing: Standing) -> bool:
        """Work until the power goes. Answers whether it went in the middle of the first start."""
        moment = _Moment(self._chance, self.places)
        disk = VolatileDisk(self._place, moment)
        opened = False
        try:
            with mock.patch.object(backup, "sync", disk.sync):
                if meanwhile == _START:
                    moment.arm(_START_OPERATIONS)
                    opened = await self._start(disk)
                else:
                    opened = True
                    await self._work(disk, moment, meanwhile, standing)
        finally:
            disk.lose_power()
            in_part = self._chance.random() < self.in_part
            disk.come_back(self._chance if in_part else None)
        self._tally.losses += 1
        self._tally.in_part += in_part
        self._tally.meanwhile[meanwhile] += 1
        self._tally.operations[moment.met] += 1
        return not opened

    async def _start(self, disk: VolatileDisk) -> bool:
        """Answers whether it came to its end."""
        async with _opened(self._store, self._clock) as store:
            opening = asyncio.ensure_future(store.opened())
            await _until(disk, opening)
            if opening.cancel() or disk.lost.is_set():
                await asyncio.wait({opening})
                return False
            if error := opening.exception():
                self.auditor.figures.broken.append(f"the store does not come back: {error}")
            return True

    async def _work(self, disk: VolatileDisk, moment: "_Moment", meanwhile: str, standing: Standing) -> None:
        async with _opened(self._store, self._clock) as store:
            try:
                await store.opened()
                await self.auditor.redeliver(InProcess(store), standing, samples=_AGAIN)
            except (LedgerError, Unanswered) as error:
                self.auditor.figures.broken.append(f"the store does not come back: {error.__cause__ or error}")
                return
            if meanwhile != _RESTART:
                moment.arm()
                driving = asyncio.ensure_future(self.auditor.drive(InProcess(store)))
                upkeep = asyncio.ensure_future(self._upkeep(store, disk, meanwhile))
                await _until(disk, driving)
                disk.lose_power()
                await asyncio.gather(driving, upkeep)
                return
            moment.arm(2 * _START_OPERATIONS)
        await self._start(disk)

    async def _upkeep(self, store: Store, disk: VolatileDisk, meanwhile: str) -> None:
        """The same work of maintenance over and over, until the power goes."""
        for number in itertools.count():
            with suppress(LedgerError, *_OF_A_BACKUPS_CLOSE):
                await self._maintain(store, meanwhile, number)
            if disk.lost.is_set():
                return
            await asyncio.sleep(0.002)

    async def _maintain(self, store: Store, meanwhile: str, number: int) -> None:
        if meanwhile == "a sweep":
            self.auditor.sweeping = True
            await store.sweep(self._clock.now - 30 * _DAY_S, KEPT)
            self.auditor.swept = True
        elif meanwhile == "a backup":
            to = self._place / f"backup-{self._tally.losses}-{number}.db"
            self._backups[to] = self.auditor.acknowledged()
            await store.backup(to, lambda _: None)
        elif meanwhile == "the log being moved":
            await store.finish_erasure()

    def _audit(self, standing: Standing) -> Standing:
        self._tally.backups += audit_backups(self._backups, self.auditor)
        self._backups.clear()
        if not self.auditor.turns:  # nothing was said yet: the next start has to go on from whatever is there
            return standing
        return audit_store(self._store, self.auditor)


class _Unsafe(_Victim):
    """Appends alone, since a Forget syncs all that was before it; and a disk that keeps nothing that it need not."""

    works = {"append": 1}  # noqa: RUF012  never changed
    meanwhile = ("calls alone",)
    losses = 1
    in_part = 0.0
    places = ((("write",), "-wal", 1_500),)  # before the log is moved, for which it is synced


class _Moment:
    """When the power goes: at the nth operation of a kind, from `arm` on."""

    def __init__(self, chance: random.Random, places: Sequence[_Place]) -> None:
        self._chance = chance
        self._places = places
        self._left = 0
        self._operations: Sequence[str] = ()
        self._ending = ""
        self.met = "moment between"

    def arm(self, operations: int | None = None) -> None:
        """At any of the next `operations`, or at one of the places."""
        self._operations, self._ending, most = _ANY if operations else self._chance.choice(self._places)
        self._left = self._chance.randint(1, operations or most)

    def __call__(self, operation: str, path: str) -> bool:
        if operation not in self._operations or not path.endswith(self._ending):
            return False
        self._left -= 1
        if self._left:
            return False
        file = {"-wal": "log", "rnal": "journal", "tial": "partial backup"}.get(path[-4:], "file")
        self.met = f"{operation} of the {file}"
        return True


async def _until(disk: VolatileDisk, done: "asyncio.Future[None]") -> None:
    """Until the power is gone, or it is done, or for long enough."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _PATIENCE_S
    while not (disk.lost.is_set() or done.done() or loop.time() > until):  # noqa: ASYNC110  set on other threads
        await asyncio.sleep(0.001)


@asynccontextmanager
async def _opened(path: Path, clock: Clock) -> AsyncIterator[Store]:
    store = Store(path, clock=clock)
    store.start()
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """What the store says of a disk that is dead is no news here."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


EXPERIMENT: Final = Experiment("power", "power lost at random disk operations, with torn writes", run)
