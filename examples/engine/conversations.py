"""One turn at a time in a conversation.

Take from it: the inbox queues by partition, and turns take their turn by conversation. Two threads of one direct
message are two partitions with one history; were their turns to overlap, neither would know what the other says. A
suspended turn holds its partition only: the other thread goes on.
"""

import asyncio
from weakref import WeakValueDictionary


class Conversations:
    """A lock for each conversation that somebody uses."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def alone(self, conversation: str) -> asyncio.Lock:
        """`async with` it from before History until after Append, and around a Settle."""
        return self._locks.setdefault(conversation, asyncio.Lock())
