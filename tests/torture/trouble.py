"""The ways in which a disk fails, and one that fails at its n-th operation."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import apsw

from tests.support.faulty_disk import FaultyDisk, ShortWrite

_SLOW_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to fail: of which operations, how, and what the caller is told."""

    name: str
    operations: frozenset[str]
    fail: Callable[[], None]
    told: tuple[str, str]


def _raising(code: int) -> Callable[[], None]:
    def fail() -> None:
        raise apsw.exception_for(code)

    return fail


def _half() -> None:
    raise ShortWrite


_IO: Final = ("UNAVAILABLE", "STORE_IO")
_AWAY: Final = ("UNAVAILABLE", "STORE_UNAVAILABLE")
KINDS: Final = (
    Kind("write error", frozenset({"write"}), _raising(apsw.SQLITE_IOERR_WRITE), _IO),
    Kind("short write", frozenset({"write"}), _half, _IO),
    Kind("sync error", frozenset({"sync"}), _raising(apsw.SQLITE_IOERR_FSYNC), _IO),
    Kind("read error", frozenset({"read"}), _raising(apsw.SQLITE_IOERR_READ), _IO),
    Kind("truncate error", frozenset({"truncate"}), _raising(apsw.SQLITE_IOERR_TRUNCATE), _IO),
    Kind("disk full", frozenset({"write"}), _raising(apsw.SQLITE_FULL), ("RESOURCE_EXHAUSTED", "STORE_FULL")),
    Kind("no memory", frozenset({"read"}), _raising(apsw.SQLITE_NOMEM), _AWAY),
    Kind("lock held by another program", frozenset({"lock"}), _raising(apsw.SQLITE_BUSY), _AWAY),
    Kind("slow", frozenset({"write", "sync", "read"}), lambda: time.sleep(_SLOW_S), ("", "")),
)


class Trouble:
    """Lets the n-th operation of a kind fail, and with `lasting` all after it."""

    def __init__(self, disk: FaultyDisk, kind: Kind, first: int, *, lasting: bool) -> None:
        self.met = 0
        self._kind, self._first, self._lasting = kind, first, lasting
        self._count = 0
        self._turn = threading.Lock()
        disk.watcher = self._watch

    def _watch(self, operation: str, path: str) -> None:
        if operation not in self._kind.operations or path.endswith("-shm"):
            return
        with self._turn:
            self._count += 1
            fails = self._count > self._first if self._lasting else self._count == self._first + 1
            self.met += fails
        if fails:
            self._kind.fail()


def counting(disk: FaultyDisk) -> Counter[str]:
    """Count the disk's operations from now on, by their sort."""
    counted: Counter[str] = Counter()

    def count(operation: str, path: str) -> None:
        if not path.endswith("-shm"):
            counted[operation] += 1

    disk.watcher = count
    return counted
