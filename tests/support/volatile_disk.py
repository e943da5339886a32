"""A disk that loses its power: what was not synced by then is gone, or there in part.

An apsw VFS over the real one. What SQLite writes stays in memory, where its reads see it, until SQLite syncs the file;
the real file holds what is on the disk. Names are as volatile: a file that was made or deleted is so for good once its
folder was synced. Once the power is gone every operation fails, as for a program that is about to be gone too; its
files must be closed before `come_back` leaves on the real disk what a real one might have kept.

A lost sector is 512 bytes. Of several writes to one the disk may have kept any, or part of one over another. (The real
disk is never made to sync: the power of this machine stays on.)
"""

import errno
import itertools
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import apsw

SECTOR: Final = 512

#: Of the sectors that are kept, one in so many is torn: it begins with what was written, and ends with what was there.
_TORN: Final = 8

#: The files that SQLite syncs the folder of, together with the first sync of the file itself.
_WITH_FOLDER: Final = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL

_numbers: Final = itertools.count(1)

#: The VFS below: the system's.
_REAL: Final = apsw.vfs_names()[0]

#: Told of each operation ("write", "sync", "truncate", "delete") and its file, before it happens. True: the power goes.
Moment = Callable[[str, str], bool]

#: A file, whatever its names.
_Inode = tuple[int, int]


class Content:
    """What a file holds for the programs that run, and what of that the disk lacks."""

    def __init__(self, durable: bytes) -> None:
        self.image = bytearray(durable)
        self._sectors: dict[int, list[bytes]] = {}
        self._sizes: list[int] = []

    @property
    def is_durable(self) -> bool:
        """Whether the disk has it all."""
        return not (self._sectors or self._sizes)

    def write(self, data: bytes, offset: int) -> None:
        end = offset + len(data)
        if end > len(self.image):
            self.image.extend(bytes(end - len(self.image)))
            self._sizes.append(end)
        self.image[offset:end] = data
        for number in range(offset // SECTOR, (end - 1) // SECTOR + 1):
            self._sectors.setdefault(number, []).append(bytes(self.image[number * SECTOR : (number + 1) * SECTOR]))

    def truncate(self, size: int) -> None:
        del self.image[size:]
        self.image.extend(bytes(size - len(self.image)))
        self._sizes.append(size)

    def sync(self, write: Callable[[bytes, int], None], truncate: Callable[[int], None]) -> None:
        """Have it all on the disk."""
        if self._sizes:
            truncate(min(self._sizes))
            truncate(len(self.image))
        for number in sorted(self._sectors):
            if data := bytes(self.image[number * SECTOR : (number + 1) * SECTOR]):
                write(data, number * SECTOR)
        self._sectors, self._sizes = {}, []

    def after_loss(self, durable: bytes, chance: random.Random) -> bytes:
        """What a disk might hold that had `durable` and was given the rest in any order."""
        kept = bytearray(durable)
        for number, versions in self._sectors.items():
            version = chance.choice([None, *versions])
            if version is not None:
                _put(kept, number * SECTOR, version, chance)
        size = chance.choice([len(durable), *self._sizes])
        return bytes(kept[:size].ljust(size, b"\0"))


def _put(kept: bytearray, offset: int, sector: bytes, chance: random.Random) -> None:
    """Put the sector there, or the beginning of it."""
    length = chance.randrange(1, len(sector) + 1) if chance.randrange(_TORN) == 0 else len(sector)
    kept.extend(bytes(max(0, offset + length - len(kept))))
    kept[offset : offset + length] = sector[:length]


def _write(file: BinaryIO, data: bytes, offset: int) -> None:
    file.seek(offset)
    file.write(data)


def _truncate(file: BinaryIO, size: int) -> None:
    file.truncate(size)


class VolatileDisk:
    """The default VFS of this process from its making to `come_back`. All files of one experiment are in one folder."""

    def __init__(self, folder: Path, moment: Moment) -> None:
        """`moment` is asked before each operation whether the power goes now. What is in the folder is on the disk."""
        self._folder = folder
        self._moment = moment
        self._lock = threading.RLock()
        self._contents: dict[_Inode, Content] = {}
        self._pins: list[int] = []
        self._names = set(folder.iterdir())
        self._deleted: dict[Path, tuple[bytes, Content]] = {}
        self._vfs = _Vfs(self, f"volatile-disk-{next(_numbers)}")
        self.lost = threading.Event()
        self.operations = 0

    def lose_power(self) -> None:
        """Now, whatever the moment is."""
        with self._lock:
            self.lost.set()

    def sync(self, path: Path) -> None:
        """What `fsync` of a file or a folder does. Raises `OSError` once the power is gone."""
        with self._lock:
            if self.lost.is_set():
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            if path.is_dir():
                self.sync_names()
                return
            content = self._contents.get(_inode(path))
            if content is not None:
                with path.open("r+b") as file:
                    content.sync(partial(_write, file), partial(_truncate, file))

    def come_back(self, chance: random.Random | None = None) -> None:
        """Leave on the real disk what the power's loss left: what was synced alone, or with `chance` part of the rest.

        Nothing of it may be open.
        """
        self._vfs.unregister()
        by_inode = {_inode(path): path for path in self._folder.iterdir()}
        for inode, content in self._contents.items():
            path = by_inode.get(inode)
            if path is not None and chance is not None and not content.is_durable:
                path.write_bytes(content.after_loss(path.read_bytes(), chance))
        for path in self._folder.iterdir():
            is_known = _inode(path) in self._contents
            if is_known and path not in self._names and (chance is None or chance.random() < 0.5):
                path.unlink()
        for path, (durable, content) in self._deleted.items():
            if not path.exists() and (chance is None or chance.random() < 0.5):
                path.write_bytes(durable if chance is None else content.after_loss(durable, chance))
        for pin in self._pins:
            os.close(pin)

    def before(self, operation: str, path: str) -> None:
        """Raises `apsw.IOError` where there is no power, or none any more."""
        with self._lock:
            self.operations += 1
            if not self.lost.is_set() and self._moment(operation, path):
                self.lost.set()
            self.require_power()

    def content(self, path: Path, durable: Callable[[], bytes] = bytes) -> Content:
        """What a file holds now. `durable` is asked for what is on the disk where nobody has opened it before."""
        with self._lock:
            inode = _inode(path)
            if inode not in self._contents:
                self._pins.append(os.open(path, os.O_PATH | os.O_CLOEXEC))  # so that no other file gets its number
                self._contents[inode] = Content(durable())
            return self._contents[inode]

    def require_power(self) -> None:
        """Raises `apsw.IOError` where there is no power any more."""
        if self.lost.is_set():
            raise apsw.exception_for(apsw.SQLITE_IOERR)

    @contextmanager
    def held(self) -> Iterator[None]:
        """While nobody else is at it."""
        with self._lock:
            yield

    def sync_names(self) -> None:
        """The folder is as it is for good."""
        self._names = set(self._folder.iterdir())
        self._deleted.clear()

    def delete_name(self, path: Path) -> None:
        """Delete the file, which may come back until its folder is synced."""
        if path in self._names:
            self._deleted[path] = path.read_bytes(), self.content(path, path.read_bytes)
            self._names.discard(path)
        path.unlink()

    def knows(self, path: Path) -> Content | None:
        """The content of a file that was opened once."""
        return self._contents.get(_inode(path)) if path.exists() else None


class _Vfs(apsw.VFS):
    def __init__(self, disk: VolatileDisk, name: str) -> None:
        super().__init__(name, "", makedefault=True)
        self._disk = disk

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        if name is None:  # a temporary file, gone with the power in any case
            return apsw.VFSFile(_REAL, name, flags)
        return _File(self._disk, name, flags)

    def xDelete(self, name: str, sync_folder: bool) -> None:
        with self._disk.held():
            self._disk.before("delete", name)
            if not Path(name).exists():
                raise apsw.exception_for(apsw.SQLITE_IOERR_DELETE_NOENT)
            self._disk.delete_name(Path(name))
            if sync_folder:
                self._disk.sync_names()

    def xAccess(self, name: str, flags: int) -> bool:
        """SQLite takes an empty file for none, and one whose content is in memory is empty on the real disk."""
        content = self._disk.knows(Path(name))
        if flags == apsw.SQLITE_ACCESS_EXISTS and content is not None:
            return bool(content.image)
        return super().xAccess(name, flags)

    def excepthook(self, *_: object) -> bool:
        """A loss that was asked for is no news."""
        return True


class _File(apsw.VFSFile):
    def __init__(self, disk: VolatileDisk, name: Any, flags: list[int]) -> None:
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        with disk.held():
            if disk.lost.is_set():
                raise apsw.exception_for(apsw.SQLITE_CANTOPEN)
            super().__init__(_REAL, name, flags)
            self._content = disk.content(Path(self._path), self._durable)
        self._disk = disk
        self._with_folder = bool(flags[0] & _WITH_FOLDER)

    def xRead(self, amount: int, offset: int) -> bytes:
        with self._disk.held():
            self._disk.require_power()
            return bytes(self._content.image[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        with self._disk.held():
            self._disk.before("write", self._path)
            self._content.write(bytes(data), offset)

    def xTruncate(self, size: int) -> None:
        with self._disk.held():
            self._disk.before("truncate", self._path)
            self._content.truncate(size)

    def xSync(self, flags: int) -> None:  # noqa: ARG002  of any kind
        with self._disk.held():
            self._disk.before("sync", self._path)
            self._content.sync(super().xWrite, super().xTruncate)
            if self._with_folder:
                self._disk.sync_names()
                self._with_folder = False

    def xFileSize(self) -> int:
        return len(self._content.image)

    def excepthook(self, *_: object) -> bool:
        """A loss that was asked for is no news."""
        return True

    def _durable(self) -> bytes:
        """Through SQLite: to open and close a file by other means drops the locks that it holds on it."""
        return super().xRead(super().xFileSize(), 0)


def _inode(path: Path) -> _Inode:
    status = path.stat()
    return status.st_dev, status.st_ino
