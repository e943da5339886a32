"""The backup: a copy as of one moment, in steps that appends pass between, checked before it has its name.

Copied on the writer's own connection: a copy from any other starts over at each commit, and under load never ends.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

import apsw

from sidecar.domain.errors import Code, LedgerError
from sidecar.store.check import check
from sidecar.store.errors import translated
from sidecar.store.progress import Progress, Report

#: Pages copied in one step: about a third of a millisecond of the writer's time.
_STEP_PAGES: Final = 32

#: SQLite's instructions between two looks at whether the backup is given up: some milliseconds of a check.
_INSTRUCTIONS: Final = 100_000

#: What must stay free on the target's disk beside the copy, in bytes.
_MARGIN_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A finished backup: its size in bytes, and what the check of it counted."""

    path: str
    size_bytes: int
    rows: int
    entries: int


class Copy:
    """A backup under way, in a file beside its target. Its end removes that file, unless it has become the backup."""

    def __init__(self, source: apsw.Connection, target: Path, giving_up: Event) -> None:
        """Begin, on the writer's thread. Raises `LedgerError` where the target cannot be written, saying what to do.

        Once `giving_up` is set, the next step and each part of the check raise.
        """
        self._giving_up = giving_up
        self._source = source
        self._target = target
        self._partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
        with translated(), _named(target):
            self._refuse_unfit()
            os.close(os.open(self._partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            self._db = apsw.Connection(str(self._partial), flags=apsw.SQLITE_OPEN_READWRITE)
            self._db.pragma("synchronous", "off")  # synced once, at the end
            self._backup = self._db.backup("main", source, "main")

    def step(self) -> Progress:
        """Copy some pages. On the writer's thread."""
        self._go_on()
        with translated():
            self._backup.step(_STEP_PAGES)
            total = self._backup.page_count
            return Progress("pages", total - self._backup.remaining, total)

    @property
    def complete(self) -> bool:
        """Whether all pages are copied."""
        return self._backup.done

    def stop_copying(self) -> None:
        """Let go of the source. On the writer's thread."""
        self._backup.close(True)

    def publish(self, report: Report) -> BackupReport:
        """Make one file of the copy, check it, sync it, give it its name. It takes its time: on a thread of its own."""
        with translated(), _named(self._target):
            self._db.pragma("journal_mode", "delete")
            self._db.set_progress_handler(self._giving_up.is_set, _INSTRUCTIONS)
            found = check(self._db, report)
            self._db.close()
            if not found.sound:
                raise LedgerError(
                    Code.STORE_CORRUPT, "the copy does not pass the check, so it was not kept; check the store itself"
                )
            sync(self._partial)
            os.link(self._partial, self._target)  # fails where somebody else took the name meanwhile
            sync(self._target.parent)
        return BackupReport(str(self._target), self._target.stat().st_size, found.rows, found.entries)

    def discard(self) -> None:
        """Remove the partial file; of a published backup it is the second name."""
        self._db.close()
        for suffix in ("", "-journal"):
            self._partial.with_name(self._partial.name + suffix).unlink(missing_ok=True)

    def _go_on(self) -> None:
        if self._giving_up.is_set():
            raise LedgerError(Code.STORE_UNAVAILABLE, "the backup was given up")

    def _refuse_unfit(self) -> None:
        str(self._partial).encode()
        if self._target.exists():
            raise FileExistsError
        disk = os.statvfs(self._target.parent)
        needed = self._source.pragma("page_count") * self._source.pragma("page_size") + _MARGIN_BYTES
        free = disk.f_bavail * disk.f_frsize
        if free < needed:
            raise LedgerError(
                Code.STORE_FULL, f"{self._target.parent} has {free} bytes free, and the backup needs {needed}"
            )


@contextmanager
def _named(target: Path) -> Iterator[None]:
    """Name the target in an operating system's error, so that a person can act on it."""
    try:
        yield
    except UnicodeEncodeError as error:  # SQLite's paths are text
        raise LedgerError(Code.INVALID, "the path of a backup is no valid UTF-8; name another") from error
    except FileExistsError as error:
        raise LedgerError(Code.INVALID, f"{target} exists, and no backup replaces one; name another") from error
    except OSError as error:
        raise LedgerError(
            Code.INVALID, f"{target} cannot be written: {error.strerror}; name a folder that the sidecar can write to"
        ) from error


def sync(path: Path) -> None:
    """Put a file, or the names in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
