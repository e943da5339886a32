"""A reserve on the disk, so that what frees space still works when there is none."""

import os
import sys
from pathlib import Path
from typing import Final

#: Enough for the log of one batch of deletes, and for a log of twice `log.MOVE_FRAMES` to be moved into the file.
RESERVE_BYTES: Final = 8 * 1024 * 1024


class Reserve:
    """A file of `RESERVE_BYTES` beside the store, given up when the disk is full and taken again when it is not."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = False

    @property
    def is_there(self) -> bool:
        """Whether this or an earlier process took the space."""
        return self._path.exists()

    def hold(self) -> bool:
        """Take the space, if it is not held. False if the disk has none to give."""
        if self._held:
            return True
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            _fill(descriptor)
        except OSError:
            self.give_up()
            return False
        finally:
            os.close(descriptor)
        self._held = True
        return True

    def give_up(self) -> None:
        """Give the space back to the disk. Harmless if it is not held."""
        self._held = False
        self._path.unlink(missing_ok=True)


def _fill(descriptor: int) -> None:
    """Make the file take its space. Raises `OSError` if there is none."""
    if sys.platform == "linux":
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
    elif os.fstat(descriptor).st_size < RESERVE_BYTES:
        os.write(descriptor, bytes(RESERVE_BYTES))
