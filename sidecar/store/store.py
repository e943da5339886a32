"""The store as the services see it: opened in its own time, refusing with a reason until then, off the event loop."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final, TypeVar

import apsw

from sidecar.domain.eligibility import Conversation, TurnKey
from sidecar.domain.entry import Entry, EntryRef, Recorded
from sidecar.domain.errors import Code, LedgerError
from sidecar.domain.orders import OrderId
from sidecar.domain.timing import TIMING
from sidecar.store import forgotten
from sidecar.store.append import Appended, append, new_row, trim
from sidecar.store.backup import BackupReport, Copy
from sidecar.store.check import CheckReport, check
from sidecar.store.database import Alone, Database
from sidecar.store.history import Reading, read_history
from sidecar.store.lock import Lock
from sidecar.store.log import MOVE_FRAMES
from sidecar.store.observer import UNOBSERVED, StoreObserver
from sidecar.store.progress import Progress, Report
from sidecar.store.rewrite import accept, find_open
from sidecar.store.row import find_entry
from sidecar.store.settle import Settled, settle
from sidecar.store.sweep import START, Place, Swept, expire_some, give_back_some, overfull, sweep_some
from sidecar.store.totals import Sizes, Totals, free_bytes, read_sizes, read_totals
from sidecar.store.transaction import touch
from sidecar.store.worker import Worker

T = TypeVar("T")
Clock = Callable[[], int]

_log = logging.getLogger("turnledger.store")

#: Jobs that may wait for a thread where nobody says how many.
_ROOM: Final = 1_024

#: Seconds between looks at a lock that another sidecar holds: a rolling restart hands over within this.
_LOCK_POLL_S: Final = 0.2

#: Seconds between tries to open a store that could not be opened, and between tries to empty a log that a reader holds.
_RETRY_S: Final = 1.0

#: Seconds between tries to empty a log that a reader holds, before that is said: our own readers are done within them.
_RESTS_S: Final = (0.01, 0.02, 0.04, 0.08, 0.0)

#: A sweep rests so many times as long as it works: it takes a quarter of the writer's time at most.
_REST: Final = 3

#: What no retry mends: somebody has to act, and the sidecar goes on to say so.
_FINAL: Final = frozenset({Code.STORE_CORRUPT, Code.STORE_NEWER})

_STARTING: Final = "the store is being opened; retry"
_HELD: Final = "another sidecar owns the store; retry until it ends"
_CLOSING: Final = "the store is closing; retry"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What was read and is too large to be finished on the reader's thread."""

    reading: Reading


class Store:
    """One seat of ownership: the lock, the database, its two threads.

    Every operation raises `LedgerError`: STORE_UNAVAILABLE while the store is starting, held elsewhere, closing or
    gone, STORE_NEWER or STORE_CORRUPT where it cannot be used, else as SQLite fails.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        room: int = _ROOM,
        vfs: str | None = None,
        observer: StoreObserver = UNOBSERVED,
    ) -> None:
        """`clock` gives seconds since 1970, UTC; `room` is how many jobs may wait for each thread.

        Nothing is touched before `start`.
        """
        self._path = path
        self._clock = clock
        self._room = room
        self._vfs = vfs
        self._observer = observer
        self._lock = Lock(path.with_name(path.name + ".lock"))
        self._refusal: LedgerError | None = LedgerError(Code.STORE_UNAVAILABLE, _STARTING)
        self._opening: asyncio.Task[None] | None = None
        self._erasing: asyncio.Task[None] | None = None
        self._mover: asyncio.Task[None] | None = None
        self._moving = asyncio.Lock()
        self._closing = asyncio.Event()
        self._owned = asyncio.Event()
        self._database: Database | None = None
        self._writer: Worker
        self._reader: Worker

    def start(self) -> None:
        """Begin to open the store, for as long as that takes."""
        self._opening = asyncio.create_task(self._open())

    async def open_once(self) -> None:
        """Open the store now, instead of `start`. Raises the `LedgerError` that keeps it closed: nobody tries again."""
        self._take(await asyncio.to_thread(self._open_here))

    async def opened(self) -> None:
        """Wait until the store is open. Raises the `LedgerError` that keeps it closed, where no retry mends that."""
        if self._opening is not None:
            await asyncio.shield(self._opening)
        self._require_open()

    async def owned(self) -> None:
        """Wait until this process owns the store, whatever the state of its file."""
        await self._owned.wait()

    async def close(self) -> None:
        """Refuse what comes, finish what was accepted, close the file, give the lock back."""
        self._closing.set()
        self._refusal = LedgerError(Code.STORE_UNAVAILABLE, _CLOSING)
        try:
            tasks = (self._opening, self._erasing, self._mover)
            await asyncio.gather(*(task for task in tasks if task is not None))
            if self._database is not None:
                self._database.interrupt_beside()
                await self._writer.stop()
                await self._reader.stop()
                await asyncio.to_thread(_close, self._database)
        finally:
            self._lock.release()

    async def append(self, key: TurnKey, entry: Entry, entry_id: str, max_entries: int) -> Appended:
        """Record a turn; answers once it is on disk."""
        seal = partial(new_row, key, entry, entry_id, self._clock())
        row = await asyncio.to_thread(seal) if entry.is_large else seal()
        return await self._write(lambda db: append(db, row, max_entries))

    async def open_entry(self, conversation: Conversation, order_id: OrderId) -> Recorded | None:
        """The entry that an order still waits in, or None."""
        return await self._read(lambda db: find_open(db, conversation, order_id))

    async def entry(self, conversation: Conversation, ref: EntryRef) -> Recorded | None:
        """An entry by its reference, or None where it is not kept or not that conversation's."""
        return await self._read(lambda db: _recorded(db, conversation, ref))

    async def accept(self, conversation: Conversation, order_id: OrderId, rewrite: str) -> bool:
        """Put a good rewrite in its place; answers once it is on disk. False where the order is no longer open."""
        return await self._write(lambda db: accept(db, conversation, order_id, rewrite))

    async def settle(self, key: TurnKey) -> Settled:
        """Turn an unsent text into a reply; answers once it is on disk."""
        return await self._write(lambda db: settle(db, key))

    async def history(self, key: TurnKey, max_entries: int, finish: Callable[[Reading], T]) -> T:
        """Read a conversation's newest entries. `finish` makes the answer of them, on the reader's thread.

        On another one where an entry is large, so that no other read waits behind that.
        """
        timing = TIMING.get()

        def finished(reading: Reading) -> T:
            began = time.monotonic()
            answer = finish(reading)
            if timing is not None:
                timing.composed_s += time.monotonic() - began
            return answer

        def read(db: apsw.Connection) -> T | Unfinished:
            reading = read_history(db, key, max_entries)
            is_large = any(entry.is_large for entry in reading.kept.entries)
            return Unfinished(reading) if is_large else finished(reading)

        found = await self._read(read)
        if isinstance(found, Unfinished):
            return await asyncio.to_thread(finished, found.reading)
        return found

    async def forget_turn(self, key: TurnKey) -> int:
        """Delete one turn. Answers how many went."""
        return await self._erase(lambda db: forgotten.forget_turn(db, key, self._clock()))

    async def forget_conversation(self, conversation: Conversation) -> int:
        """Delete all turns of a seat in one conversation. Answers how many went."""
        return await self._erase_all(
            lambda db: forgotten.forget_some_of_conversation(db, conversation, self._clock()),
        )

    async def forget_seat(self, agent_handle: str) -> int:
        """Delete all turns of a seat. Answers how many went."""
        return await self._erase_all(lambda db: forgotten.forget_some_of_seat(db, agent_handle, self._clock()))

    async def finish_erasure(self) -> bool:
        """Empty the log of what was deleted. False while a reader or a fault keeps it: then it is tried again.

        No fault is raised: what was deleted is gone from every answer, and whoever asked for it is to be told that.
        """
        complete = await self._log_is_empty()
        if not complete and (self._erasing is None or self._erasing.done()):
            self._erasing = asyncio.create_task(self._keep_erasing())
        return complete

    async def sweep(self, horizon: int | None, max_entries: int | None) -> Swept:
        """Delete what is from before `horizon` (seconds since 1970, UTC), and take entries beyond `max_entries`.

        None leaves that part out. In small transactions with rests between them, so that appends get their turn; then
        free pages go back to the disk and the log is emptied. Stopped in the middle, it has done so much less.
        """
        swept = trimmed = expired = 0
        if horizon is not None:
            swept = await self._again(partial(sweep_some, horizon=horizon))
            expired = await self._again(partial(expire_some, horizon=horizon))
        if max_entries is not None:
            trimmed = await self._trim_all(max_entries)
        given_back = await self._again(give_back_some)
        return Swept(swept, trimmed, expired, given_back, log_is_empty=await self._empty_log())

    async def totals(self) -> Totals:
        """Count what is in the store."""
        return await self._beside(read_totals)

    async def check(self, report: Report) -> CheckReport:
        """Check all of the store, beside everything else. `report` is called on the checking thread."""
        database = self._require_open()

        def report_or_stop(progress: Progress) -> None:
            database.go_on()
            report(progress)

        return await self._beside(lambda db: check(db, report_or_stop))

    async def backup(self, to: Path, report: Report) -> BackupReport:
        """Copy the store into a file, as of one moment. `report` is called on whichever thread is at work."""
        giving_up = Event()
        copying = asyncio.ensure_future(self._copy(to, report, giving_up))
        try:
            return await asyncio.shield(copying)
        except asyncio.CancelledError:
            giving_up.set()  # what is on a thread goes on there, and must be waited for to leave nothing behind
            await asyncio.wait({copying})
            raise

    async def try_read(self) -> None:
        """Really read. Raises what keeps History from being answered."""
        await self._read(lambda db: db.execute("SELECT id FROM conversation_sessions ORDER BY id LIMIT 1").fetchone())

    async def try_write(self) -> None:
        """Really write, sync included, and leave nothing behind. Raises what keeps Append from being answered."""
        await self._write(touch)

    async def sizes(self) -> Sizes:
        """Sizes of files and disk."""
        try:
            sizes = await asyncio.to_thread(read_sizes, self._path)
        except OSError as error:
            raise LedgerError(Code.STORE_UNAVAILABLE, f"the store's file cannot be found ({error.strerror})") from error
        with suppress(LedgerError):  # a store that cannot be read has sizes all the same
            sizes = replace(sizes, free_bytes=await self._read(free_bytes))
        return sizes

    def waiting(self) -> dict[str, int]:
        """How many jobs wait for each thread."""
        if self._database is None:
            return {}
        return {"writer": self._writer.waiting, "reader": self._reader.waiting}

    def _require_open(self) -> Database:
        if self._refusal is not None:
            raise LedgerError(self._refusal.code, self._refusal.message)
        if self._database is None:
            raise LedgerError(Code.STORE_UNAVAILABLE, _STARTING)
        return self._database

    async def _read(self, job: Callable[[apsw.Connection], T]) -> T:
        self._require_open()
        return await self._reader.run(job)

    async def _write(self, job: Callable[[apsw.Connection], T]) -> T:
        database = self._require_open()
        written = await self._writer.run(job)
        self._look_at_log(database)
        return written

    async def _erase(self, delete_some: Callable[[apsw.Connection], int]) -> int:
        database = self._require_open()
        deleted: int = await self._writer.run(Alone(partial(database.erase, delete_some)))
        self._look_at_log(database)
        return deleted

    async def _copy(self, to: Path, report: Report, giving_up: Event) -> BackupReport:
        copy = await self._alone(lambda db: Copy(db, to, giving_up))
        try:
            try:
                while not copy.complete:
                    report(await self._alone(lambda _: copy.step()))
            finally:
                with suppress(LedgerError):  # a store that closed meanwhile has let go of it
                    await self._alone(lambda _: copy.stop_copying())
            return await asyncio.to_thread(copy.publish, report)
        finally:
            await asyncio.to_thread(copy.discard)

    async def _alone(self, job: Callable[[apsw.Connection], T]) -> T:
        database = self._require_open()
        done: T = await self._writer.run(Alone(partial(database.once_alone, job)))
        return done

    async def _beside(self, job: Callable[[apsw.Connection], T]) -> T:
        database = self._require_open()
        return await asyncio.to_thread(database.beside, job)

    async def _again(self, some: Callable[[apsw.Connection], int]) -> int:
        """Run `some` in transactions of its own until it answers 0. Answers the total."""
        total = 0
        while done := await self._unhurried(some):
            total += done
        return total

    async def _unhurried(self, some: Callable[[apsw.Connection], int]) -> int:
        """One such transaction, and a rest of `_REST` times what it took: the busier the writer, the longer.

        Not while the log is moved: the two would slow each other down, and the appends with them.
        """
        async with self._moving:
            began = time.monotonic()
            done = await self._erase(some)
        await asyncio.sleep(_REST * (time.monotonic() - began))
        return done

    async def _trim_all(self, max_entries: int) -> int:
        trimmed = 0
        after: Place | None = START
        while after is not None:
            find = partial(overfull, after=after, max_entries=max_entries)
            conversations, after = await self._read(find)
            for conversation in conversations:
                trimmed += await self._unhurried(partial(trim, conversation=conversation, max_entries=max_entries))
        return trimmed

    async def _erase_all(self, delete_some: Callable[[apsw.Connection], int]) -> int:
        """In small transactions, so that appends get their turn between them."""
        total = 0
        while True:
            deleted = await self._erase(delete_some)
            total += deleted
            if deleted < forgotten.BATCH_ROWS:
                return total

    async def _empty_log(self) -> bool:
        """Empty the log. False while a reader holds it. Most of it is moved beside the writer first."""
        database = self._require_open()
        for rest_s in _RESTS_S:
            async with self._moving:
                with suppress(LedgerError):  # a full disk among others, where the reserve helps what comes next
                    await asyncio.to_thread(database.move_log)
                complete: bool = await self._writer.run(Alone(database.empty_log))
            if complete:
                return True
            await asyncio.sleep(rest_s)
        return False

    def _look_at_log(self, database: Database) -> None:
        """Have the log moved once it is long. Appends go on meanwhile."""
        if database.log_frames >= MOVE_FRAMES and (self._mover is None or self._mover.done()):
            self._mover = asyncio.create_task(self._move_log(database))

    async def _move_log(self, database: Database) -> None:
        """Once it can begin anew the log is as long as it was; where a reader or a fault keeps it, later."""
        try:
            async with self._moving:
                await asyncio.to_thread(database.move_log)
                if await self._writer.run(Alone(database.begin_log_anew)):
                    return
        except LedgerError as error:
            _log.warning("the log cannot be moved into the store's file, and grows: %s", error.message)
        await self._closes_within(_RETRY_S)

    async def _keep_erasing(self) -> None:
        """Until the log is empty, or the store closes, which empties it too."""
        while not await self._log_is_empty():
            if await self._closes_within(_RETRY_S):
                return

    async def _log_is_empty(self) -> bool:
        try:
            return await self._empty_log()
        except LedgerError as error:
            _log.warning("what was forgotten is not yet erased: %s", error.message)
            return False

    async def _open(self) -> None:
        """Until the store is open, or until only a person can mend it."""
        while not await self._try_open():
            if await self._closes_within(_LOCK_POLL_S if self._held_elsewhere() else _RETRY_S):
                return

    async def _closes_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._closing.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _held_elsewhere(self) -> bool:
        return self._refusal is not None and self._refusal.message == _HELD

    async def _try_open(self) -> bool:
        try:
            database = await asyncio.to_thread(self._open_here)
        except LedgerError as error:
            self._refuse(error)
            return error.code in _FINAL
        finally:
            if self._lock.held:
                self._owned.set()
        self._take(database)
        return True

    def _take(self, database: Database) -> None:
        self._writer = Worker("writer", database.write_batch, self._observer, room=self._room)
        self._reader = Worker("reader", database.read_batch, self._observer, room=self._room)
        self._database = database
        if not self._closing.is_set():
            self._refusal = None
            _log.info("the store is open: %s", self._path)
            self._erasing = asyncio.create_task(self._keep_erasing())

    def _refuse(self, error: LedgerError) -> None:
        if self._closing.is_set():
            return
        if self._refusal is None or self._refusal.message != error.message:
            again = "" if error.code in _FINAL else " (trying again by itself)"
            _log.error("the store is not open%s, and every call is told why: %s: %s", again, self._path, error.message)
        self._refusal = error

    def _open_here(self) -> Database:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._path.is_dir():
                raise LedgerError(Code.STORE_UNAVAILABLE, "the store's path is a folder; name a file in it")
            if not self._lock.held and not self._lock.acquire():
                raise LedgerError(Code.STORE_UNAVAILABLE, _HELD)
            return Database(self._path, now=self._clock(), observer=self._observer, vfs=self._vfs)
        except OSError as error:
            message = f"the store's folder cannot be used ({error.strerror}); check the volume and its permissions"
            raise LedgerError(Code.STORE_UNAVAILABLE, message) from error


def _close(database: Database) -> None:
    """Every turn is in the log: a disk that keeps it from being moved must not hold up what else has to end."""
    try:
        database.close()
    except LedgerError as error:
        _log.warning("the log stays beside the store's file, and the next start reads it: %s", error.message)


def _recorded(db: apsw.Connection, conversation: Conversation, ref: EntryRef) -> Recorded | None:
    row = find_entry(db, conversation, ref)
    return None if row is None else row.recorded()
