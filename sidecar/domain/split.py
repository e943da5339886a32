"""The split: which entries of a conversation stand whole in a block, by their sizes alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from sidecar.domain.limits import ACCOUNT_BYTES, BLOCK_BYTES, WHOLE_BYTES

#: Bytes of the blank line between two parts of a block.
APART_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class Shares:
    """Bytes for the newest entries, whole, and for the account of the older ones, the blank line after it included."""

    whole: int
    account: int

    @classmethod
    def of(cls, room: int) -> Self:
        """Three quarters of a room and one, as the limits have it."""
        return cls(room * WHOLE_BYTES // BLOCK_BYTES, room * ACCOUNT_BYTES // BLOCK_BYTES)


SHARES: Final = Shares(WHOLE_BYTES, ACCOUNT_BYTES)


def whole_count(newest_first: Iterable[int], shares: Shares) -> int:
    """How many of the newest entries are whole, by their sizes in bytes. Takes no more sizes than it needs to know.

    All within both shares; else the longest run within its own, and never none: the newest entry survives, however
    long. The older ones too, where they fit the account's share as they are: that share is always the account's, so
    that a giant does not silence what was said before it.
    """
    count = run = total = older = 0
    for size in newest_first:
        total += size + (APART_BYTES if count else 0)
        if run == count and (total <= shares.whole or not count):
            run += 1
        else:
            older += size + APART_BYTES
        count += 1
        if total > shares.whole + shares.account and older > shares.account:
            return run
    return count


def slid_out(sizes: Sequence[int]) -> range:
    """Which entries are no longer whole since the newest came: places in `sizes` (bytes as rendered), oldest first."""
    whole_before = len(sizes) - 1 - whole_count(reversed(sizes[:-1]), SHARES)
    return range(whole_before, len(sizes) - whole_count(reversed(sizes), SHARES))
