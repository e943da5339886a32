"""Where a call's time went: a note that rides along with it, for whoever measures."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class Timing:
    """Seconds of one call: waiting for the store's threads, and having their attention. Several jobs add up.

    Within their attention: the commit that its write shared with others, and making an answer of what was read.
    """

    waited_s: float = 0.0
    held_s: float = 0.0
    committed_s: float = 0.0
    composed_s: float = 0.0


#: The note of the call that is being served, where somebody wants one. Tasks that it starts write into the same.
TIMING: Final[ContextVar[Timing | None]] = ContextVar("timing", default=None)
