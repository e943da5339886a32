"""A disk that fails, stalls and is watched on request: a real file system behind an apsw VFS."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw

#: Called before each operation ("write", "sync", "read", "truncate", "lock") with the file's path. It may note, wait or
#: raise.
Watcher = Callable[[str, str], None]

_numbers: Final = itertools.count(1)


class ShortWrite(Exception):
    """Half of a write arrives, and then the disk fails. For a watcher of writes to raise."""


class FaultyDisk:
    """A registered VFS. Set `watcher` to meddle with what SQLite does, None to let it be."""

    def __init__(self) -> None:
        self.name = f"faulty-disk-{next(_numbers)}"
        self.watcher: Watcher | None = None
        self._vfs = _Vfs(self)

    def close(self) -> None:
        """Unregister the VFS, once its files are closed."""
        self.watcher = None
        self._vfs.unregister()

    def fail(self, operation: str, code: int, *, ending: str = "", times: int | None = None) -> None:
        """Let an operation on files whose path ends so fail with an SQLite code, so many times, or until `heal`."""
        left = itertools.repeat(None) if times is None else iter(range(times))
        done = object()

        def watcher(happening: str, path: str) -> None:
            if happening == operation and path.endswith(ending) and next(left, done) is not done:
                raise apsw.exception_for(code)

        self.watcher = watcher

    def be_full_beside(self, reserve: Path) -> None:
        """Have no room for a write as long as the reserve is there."""

        def watcher(happening: str, path: str) -> None:
            if happening == "write" and not path.endswith("-shm") and reserve.exists():
                raise apsw.exception_for(apsw.SQLITE_FULL)

        self.watcher = watcher

    def heal(self) -> None:
        """Work again."""
        self.watcher = None

    def before(self, operation: str, path: str) -> None:
        if self.watcher is not None:
            self.watcher(operation, path)


@contextmanager
def faulty_disk() -> Iterator[FaultyDisk]:
    """A disk for one test."""
    disk = FaultyDisk()
    try:
        yield disk
    finally:
        disk.close()


class _Vfs(apsw.VFS):
    def __init__(self, disk: FaultyDisk) -> None:
        super().__init__(disk.name, "")
        self._disk = disk

    def xOpen(self, name: Any, flags: list[int]) -> "_File":
        return _File(self._disk, name, flags)

    def excepthook(self, *_: object) -> bool:
        """A fault that was asked for is no news."""
        return True


class _File(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)

    def xWrite(self, data: bytes, offset: int) -> None:
        try:
            self._disk.before("write", self._path)
        except ShortWrite as error:
            super().xWrite(data[: len(data) // 2], offset)
            raise apsw.exception_for(apsw.SQLITE_IOERR_WRITE) from error
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._disk.before("sync", self._path)
        super().xSync(flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.before("read", self._path)
        return super().xRead(amount, offset)

    def xLock(self, level: int) -> None:
        self._disk.before("lock", self._path)
        super().xLock(level)

    def xTruncate(self, size: int) -> None:
        self._disk.before("truncate", self._path)
        super().xTruncate(size)

    def excepthook(self, *_: object) -> bool:
        """A fault that was asked for is no news."""
        return True
