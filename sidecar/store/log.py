"""The write-ahead log: moved into the store's file on a connection of its own, so that no append pays for it."""

import threading
from pathlib import Path
from typing import Final

import apsw

from sidecar.store.connection import open_mover
from sidecar.store.errors import translated
from sidecar.store.remnants import WithoutRemnants

#: Frames that may wait in the log before it is moved, of a page each: 4 MiB. Fewer, and a page that is written again
#: and again is moved each time; more, and a crash has more to read again.
MOVE_FRAMES: Final = 1_000

#: Frames that may be left for the writer's own time: about a millisecond of it.
_FEW_FRAMES: Final = 64

#: Rounds beside the writer before it has to wait for what is left, however much that is.
_ROUNDS: Final = 5


class LogMover:
    """Moves the log. Any thread may call; one call at a time is at work."""

    def __init__(self, path: Path, vfs: str | None) -> None:
        """Raises `apsw.Error`."""
        self._turn = threading.Lock()
        self._vfs = WithoutRemnants(vfs)
        try:
            self._db = open_mover(path.resolve(), self._vfs.vfs_name)
        except apsw.Error:
            self._vfs.unregister()
            raise

    def move(self) -> None:
        """Move what no reader needs, while the writer goes on, until little is left. Raises `LedgerError`."""
        for _ in range(_ROUNDS):
            with self._turn, translated():
                frames, moved = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if frames - moved <= _FEW_FRAMES:
                return

    def begin_anew(self) -> bool:
        """Move the rest and let the log begin at its start. On the writer's thread. False while a reader holds it."""
        return self._finish(apsw.SQLITE_CHECKPOINT_RESTART)

    def empty(self) -> bool:
        """Move the rest and cut the log to nothing. On the writer's thread. False while a reader holds it."""
        return self._finish(apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def close(self) -> None:
        """Close the connection; the last one of a store moves the log and removes it.

        Raises `apsw.Error` where that fails: closed it is all the same, and the log stays.
        """
        with self._turn:
            try:
                self._db.close()
            finally:
                self._vfs.unregister()

    def _finish(self, mode: int) -> bool:
        with self._turn, translated():
            try:
                self._db.wal_checkpoint(mode=mode)
            except apsw.BusyError:
                return False
        return True
