"""Giving memory back after giants.

A message of megabytes comes through the transport in small blocks, and passes through calls whose frames form cycles.
The C library keeps the blocks for later and Python's collector comes by rarely: 64 callers with 31 MB each left
gigabytes in a process that was idle again.
"""

import asyncio
import ctypes
import gc
from contextlib import suppress
from typing import Final

#: From this size on a message counts, in bytes.
GIANT_BYTES: Final = 1024 * 1024

#: Seconds after a giant, in which its answer goes out and others come and go.
_SOON_S: Final = 1.0


class Memory:
    """Collects once for all the giants of a second, on a thread."""

    def __init__(self) -> None:
        self._planned: asyncio.TimerHandle | None = None

    def give_back_soon(self) -> None:
        """A giant is over. On the event loop."""
        if self._planned is None:
            self._planned = asyncio.get_running_loop().call_later(_SOON_S, self._begin)

    def _begin(self) -> None:
        self._planned = None
        asyncio.get_running_loop().run_in_executor(None, _give_back)


def _give_back() -> None:
    gc.collect()
    with suppress(OSError, AttributeError):  # a C library that is not glibc has no such call, and no such habit
        ctypes.CDLL(None).malloc_trim(0)
