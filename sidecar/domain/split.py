"""The split: which entries of a conversation stand whole in a block, by their sizes alone."""

from collections.abc import Sequence
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


def whole_count(sizes: Sequence[int], shares: Shares) -> int:
    """How many of the newest entries are whole, by their sizes in bytes, oldest first.

    All within both shares; else the longest run within its own, and never none: the newest entry survives, however
    long. The older ones too, where they fit the account's share as they are: that share is always the account's, so
    that a giant does not silence what was said before it.
    """
    if _joined(sizes) <= shares.whole + shares.account:
        return len(sizes)
    run = max(_run_within(sizes, shares.whole), 1)
    older = sizes[: len(sizes) - run]
    return len(sizes) if _joined(older) + APART_BYTES <= shares.account else run


def slid_out(sizes: Sequence[int]) -> range:
    """Which entries are no longer whole since the newest came: places in `sizes` (bytes as rendered), oldest first."""
    whole_before = len(sizes) - 1 - whole_count(sizes[:-1], SHARES)
    return range(whole_before, len(sizes) - whole_count(sizes, SHARES))


def _run_within(sizes: Sequence[int], room: int) -> int:
    run = 0
    for size in reversed(sizes):
        room -= size + (APART_BYTES if run else 0)
        if room < 0:
            break
        run += 1
    return run


def _joined(sizes: Sequence[int]) -> int:
    return sum(sizes) + APART_BYTES * max(len(sizes) - 1, 0)
