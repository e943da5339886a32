"""Retention: which rows are past it, by a clock that may step and an uptime that does not.

And the bound that writes trim by, so that neither a stepped clock nor a mistyped setting destroys anything at once.
"""

from dataclasses import dataclass
from typing import Final

DAY_S: Final = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the clock: rows from before `horizon` (seconds since 1970, UTC) may go. `uptime_s` is monotonic."""

    uptime_s: float
    horizon: int


def look(now: int, uptime_s: float, retention_days: int, interval_s: int) -> Look:
    """The horizon by the clock alone. No retention is shorter than the interval between two sweeps."""
    return Look(uptime_s, now - max(retention_days * DAY_S, interval_s))


class Horizon:
    """Lets a row go only if it was past the horizon at two looks that are an interval of uptime apart.

    A clock that leaps ahead and is set right within the interval sweeps nothing; one that leaps back keeps rows longer.
    """

    def __init__(self, interval_s: int) -> None:
        self._interval_s = interval_s
        self._looks: list[Look] = []

    def agreed(self, this: Look) -> int | None:
        """The horizon that this look and one an interval before agree on; None where there is none so old."""
        old_enough = [each for each in self._looks if this.uptime_s - each.uptime_s >= self._interval_s]
        # The newest of those is the one to come back to; younger ones will be old enough for later looks.
        self._looks = [*old_enough[-1:], *self._looks[len(old_enough) :], this]
        return min(old_enough[-1].horizon, this.horizon) if old_enough else None


class TrimBound:
    """How many entries of a conversation a write leaves, while `max_entries` may change at any time.

    A raised setting holds at once. A lowered one from the next sweep on: until then it can be put right, and nothing
    is lost but what was shown meanwhile.
    """

    def __init__(self, max_entries: int) -> None:
        self._bound = max_entries

    def for_a_write(self, max_entries: int) -> int:
        """The bound of a write that finds the setting as given."""
        self._bound = max(self._bound, max_entries)
        return self._bound

    def for_a_sweep(self, max_entries: int) -> int:
        """The bound of a sweep, and of the writes after it."""
        self._bound = max_entries
        return self._bound
