"""The open store: a connection for each thread, and what it does with it. Blocking; `Store` keeps it off the loop."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from sidecar.domain.errors import Code, LedgerError
from sidecar.store.commit import commit_together
from sidecar.store.connection import open_reader, open_writer, prepare_to_write
from sidecar.store.errors import translated, translated_unseen
from sidecar.store.log import LogMover
from sidecar.store.migrate import migrate, missing, require_schema, shipped
from sidecar.store.observer import UNOBSERVED, StoreObserver
from sidecar.store.reserve import Reserve
from sidecar.store.worker import Job, Outcome, attempt

T = TypeVar("T")

#: SQLite's instructions between two looks at whether a long read should end: some milliseconds.
_INSTRUCTIONS: Final = 100_000


#: A first start that was cut off leaves an empty file and no reserve. With one the store was open before, and to begin
#: anew in silence would pass off everything in it as never said.
_EMPTIED: Final = "the store's file is empty, and was in use before; restore a backup, or remove the file to begin anew"


@dataclass(frozen=True, slots=True)
class Alone:
    """A job that runs outside the shared transaction, because it makes its own or must not be in any."""

    job: Callable[[], Any]

    def __call__(self, _: apsw.Connection) -> Any:
        return self.job()


class Database:
    """A writing and a reading connection to a migrated store, and one that moves the log."""

    def __init__(self, path: Path, *, now: int, vfs: str | None = None, observer: StoreObserver = UNOBSERVED) -> None:
        """Open and migrate. Raises `LedgerError`, and `OSError` if the file cannot be created."""
        self._path = path
        self._vfs = vfs
        self._observer = observer
        self._closing = threading.Event()
        #: Frames in the log after the last commit.
        self.log_frames = 0
        self._reserve = Reserve(path.with_name(path.name + ".reserve"))
        if self._reserve.is_there and path.exists() and not path.stat().st_size:
            raise LedgerError(Code.STORE_CORRUPT, _EMPTIED)
        with translated_unseen():
            self._writer = open_writer(path, vfs)
            try:
                lacking = missing(self._writer, shipped())
                prepare_to_write(self._writer)
                migrate(self._writer, lacking, now)
                require_schema(self._writer, shipped())
                self._reader = open_reader(path, vfs)
                self._log = LogMover(path, vfs)
            except (apsw.Error, LedgerError):
                self._writer.close()
                raise
        self._writer.set_wal_hook(self._note_frames)
        self._file = _identity(path)
        self._reserve.hold()

    def write_batch(self, jobs: Sequence[Job]) -> Sequence[Outcome[Any]]:
        """Run the jobs in order, those that may share one commit in one commit."""
        refusal = attempt(self._require_file)
        if refusal.error:
            return [refusal for _ in jobs]
        outcomes: list[Outcome[Any]] = []
        for alone, group in groupby(jobs, key=lambda job: isinstance(job, Alone)):
            run = self._run_each_alone if alone else self._run_together
            outcomes += run(list(group))
        return outcomes

    def read_batch(self, jobs: Sequence[Job]) -> Sequence[Outcome[Any]]:
        """Run the jobs one after another, each in its own snapshot."""
        return [attempt(partial(self._read, job)) for job in jobs]

    def erase(self, delete_some: Callable[[apsw.Connection], int]) -> int:
        """Run one transaction of deletes, on a full disk with the reserve's space. Answers how many. For `Alone`."""
        deleted: int = self._freeing(partial(_commit_alone, self._writer, delete_some, self._observer))
        return deleted

    def move_log(self) -> None:
        """Move most of the log into the file, beside the writer. On any thread but the two. Raises `LedgerError`."""
        self._log.move()

    def begin_log_anew(self) -> bool:
        """Move the rest, and let the log begin at its start. False while a reader holds it. For `Alone`."""
        return self._log.begin_anew()

    def empty_log(self) -> bool:
        """Move the rest, and cut the log to nothing. False while a reader holds it. For `Alone`."""
        return self._freeing(self._log.empty)

    def once_alone(self, job: Callable[[apsw.Connection], T]) -> T:
        """Run the job outside any transaction of ours, on the writer's connection. For `Alone`."""
        with translated():
            return job(self._writer)

    def beside(self, job: Callable[[apsw.Connection], T]) -> T:
        """Run a long read on a connection of its own, so that no call waits behind it. On any thread but the two."""
        self._require_file()
        with translated():
            db = open_reader(self._path, self._vfs)
            try:
                db.set_progress_handler(self._closing.is_set, _INSTRUCTIONS)
                return job(db)
            finally:
                db.close()

    def go_on(self) -> None:
        """Raise STORE_UNAVAILABLE once the store closes: for long work, between its statements."""
        if self._closing.is_set():
            raise LedgerError(Code.STORE_UNAVAILABLE, "the store is closing; retry")

    def interrupt_beside(self) -> None:
        """End the long reads, and let none begin: they raise STORE_UNAVAILABLE to whoever waits for them."""
        self._closing.set()

    def close(self) -> None:
        """Close the connections; the last one moves the log into the file.

        Raises `LedgerError` where the disk keeps it from that. Closed they are all the same.
        """
        with translated(), ExitStack() as closing:
            closing.callback(self._log.close)
            closing.callback(self._writer.close)
            closing.callback(self._reader.close)

    def _note_frames(self, _db: apsw.Connection, _schema: str, frames: int) -> int:
        self.log_frames = frames
        return apsw.SQLITE_OK

    def _run_together(self, jobs: Sequence[Job]) -> Sequence[Outcome[Any]]:
        return commit_together(self._writer, jobs, self._observer)

    def _run_each_alone(self, jobs: Sequence[Job]) -> Sequence[Outcome[Any]]:
        return [attempt(partial(job, self._writer)) for job in jobs]

    def _read(self, job: Job) -> Any:
        self._require_file()
        with translated():
            return job(self._reader)

    def _freeing(self, job: Callable[[], T]) -> T:
        """Run what frees space; where the disk is full, and with the reserve given up until there is room."""
        try:
            done = job()
            self._reserve.hold()
            return done
        except LedgerError as error:
            if error.code is not Code.STORE_FULL:
                raise
        self._reserve.give_up()
        return job()

    def _require_file(self) -> None:
        """A store whose file was deleted or replaced would take writes that nobody ever sees again."""
        if _identity(self._path) != self._file:
            raise LedgerError(
                Code.STORE_UNAVAILABLE, "the store's file is gone or was replaced under the running sidecar; restart it"
            )


def _commit_alone(db: apsw.Connection, job: Job, observer: StoreObserver) -> Any:
    [outcome] = commit_together(db, [job], observer)
    if outcome.error:
        raise outcome.error
    return outcome.value


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file the path names, without opening it: opening and closing it would drop SQLite's locks."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
