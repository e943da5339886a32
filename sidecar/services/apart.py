"""Work that may take long, away from the event loop, so that a giant call holds up no small one."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

#: From this size on, in bytes, a message is worked on apart. What is smaller takes some milliseconds at most; a thread
#: costs a tenth of one.
LARGE_BYTES: Final = 256 * 1024


async def apart(size: int, work: Callable[[], T]) -> T:
    """Do the work here, or on a thread where `size` (bytes) is large. Raises what the work raises."""
    return await asyncio.to_thread(work) if size >= LARGE_BYTES else work()
