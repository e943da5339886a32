"""Ownership of a path by one process, for as long as it lives."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self


class Lock:
    """An exclusive flock on a file beside what it guards.

    The kernel gives it back when the process ends, however it ends, so a lock is never stale. The file stays: to delete
    it would let two processes hold a lock on two files of one name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def acquire(self) -> bool:
        """Take the lock if nobody holds it. Raises `OSError` if its file cannot be opened."""
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Give the lock back. Harmless if it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
