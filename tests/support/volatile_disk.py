"""A disk that loses what was not synced: an apsw VFS that holds writes back until they are, and a loss on request."""

import itertools
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import apsw

#: What a disk writes whole or not at all, in bytes.
_SECTOR: Final = 512

_numbers: Final = itertools.count(1)


@dataclass(slots=True)
class _Platter:
    """One file: what the disk holds for sure, what programs see, and the changes between the two, in their order."""

    stable: bytes = b""
    seen: bytearray = field(default_factory=bytearray)
    #: Offset and data of a write, or a size and None for a truncation.
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)

    def change(self, offset: int, data: bytes | None) -> None:
        _apply(self.seen, offset, data)
        self.unsynced.append((offset, data))

    def sync(self) -> None:
        self.stable = bytes(self.seen)
        self.unsynced.clear()

    def after_loss(self, chance: random.Random) -> bytes:
        """What is found when the power is back: of what was not synced nothing, a beginning, or any sectors of it."""
        found = bytearray(self.stable)
        survival = chance.choice(["none", "beginning", "sectors"])
        if survival == "beginning":
            for offset, data in self.unsynced[: chance.randint(0, len(self.unsynced))]:
                _apply(found, offset, data)
        elif survival == "sectors":
            for offset, data in self.unsynced:
                for at in range(0, len(data or b""), _SECTOR):
                    if data is not None and chance.random() < 0.5:
                        _apply(found, offset + at, data[at : at + _SECTOR])
        return bytes(found)


class VolatileDisk:
    """A registered VFS. After `lose_at` so many operations all fails, and `found` says what the disk then holds."""

    def __init__(self, seed: int) -> None:
        self.name = f"volatile-disk-{next(_numbers)}"
        self.operations = 0
        self.lost = threading.Event()
        self.found: dict[str, bytes] = {}
        self._lose_at: int | None = None
        self._chance = random.Random(seed)
        self._platters: dict[str, _Platter] = {}
        self._turn = threading.RLock()
        self._vfs = _Vfs(self)

    def lose_at(self, operations: int) -> None:
        """Lose power after so many more operations."""
        self._lose_at = self.operations + operations

    def restore_into(self, folder: Path) -> None:
        """Write what the disk held after the loss into a folder of a disk that works."""
        for path, data in self.found.items():
            (folder / Path(path).name).write_bytes(data)

    def close(self) -> None:
        """Unregister the VFS."""
        self._vfs.unregister()

    @contextmanager
    def operation(self) -> Iterator[None]:
        """One operation at a time; raises once the power is lost."""
        with self._turn:
            if not self.lost.is_set() and self._lose_at is not None and self.operations >= self._lose_at:
                self.found = {path: each.after_loss(self._chance) for path, each in self._platters.items()}
                self.lost.set()
            if self.lost.is_set():
                raise apsw.exception_for(apsw.SQLITE_IOERR)
            self.operations += 1
            yield

    def platter(self, path: str) -> _Platter:
        """The file of that path; what was there before this disk is synced."""
        with self._turn:
            if path not in self._platters:
                there = Path(path)
                data = there.read_bytes() if there.exists() else b""
                self._platters[path] = _Platter(data, bytearray(data))
            return self._platters[path]

    def forget(self, path: str) -> None:
        """The file is deleted."""
        with self._turn:
            self._platters.pop(path, None)


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


class _Vfs(apsw.VFS):
    def __init__(self, disk: VolatileDisk) -> None:
        super().__init__(disk.name, "")
        self._disk = disk

    def xOpen(self, name: Any, flags: list[int]) -> "_File":
        return _File(self._disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        with self._disk.operation():
            super().xDelete(filename, syncdir)
            self._disk.forget(filename)

    def excepthook(self, *_: object) -> bool:
        """A loss that was asked for is no news."""
        return True


class _File(apsw.VFSFile):
    def __init__(self, disk: VolatileDisk, name: Any, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        platter = disk.platter(path)  # before SQLite opens it: to close a file that is open here would drop its locks
        super().__init__("", name, flags)
        self._disk = disk
        self._platter = platter

    def xRead(self, amount: int, offset: int) -> bytes:
        with self._disk.operation():
            return bytes(self._platter.seen[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        with self._disk.operation():
            self._platter.change(offset, data)

    def xTruncate(self, size: int) -> None:
        with self._disk.operation():
            self._platter.change(size, None)

    def xSync(self, flags: int) -> None:  # noqa: ARG002  a VFS's method
        with self._disk.operation():
            self._platter.sync()

    def xFileSize(self) -> int:
        return len(self._platter.seen)

    def excepthook(self, *_: object) -> bool:
        """A loss that was asked for is no news."""
        return True
