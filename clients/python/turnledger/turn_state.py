"""What a turn holds between its beginning and its end, for many tasks or threads at once."""

import threading
from collections.abc import Iterable
from dataclasses import replace

from turnledger.answers import History, Phase
from turnledger.entry import CallKind, ToolCall
from turnledger.reporter import Reporter
from turnledger.saved import SavedTurn
from turnledger.steps import TurnKeys
from turnledger.text import Mender

_LARGEST_ITERATION = 2**32 - 1


class TurnState:
    """The frozen opening, and what the engine added since: rounds counted and calls collected."""

    def __init__(self, opening: SavedTurn, reporter: Reporter) -> None:
        self.opening = opening
        self._reporter = reporter
        self._lock = threading.Lock()
        self._iterations = dict(opening.iterations)
        self._calls = list(opening.calls)
        self._composed_one = False

    @property
    def keys(self) -> TurnKeys:
        """The turn's keys."""
        return self.opening.keys

    @property
    def history(self) -> History | None:
        """The frozen history; None if it could not be read."""
        return self.opening.history

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls collected so far, in call order."""
        with self._lock:
            return tuple(self._calls)

    def add_call(self, name: str, arguments: str, kind: object, error: str | None, sensitive: Iterable[str]) -> None:
        """Collect one call, its texts repaired. Raises TypeError."""
        if isinstance(sensitive, str):
            raise TypeError("sensitive takes several names, not one str")
        mender = Mender()
        with self._lock:
            field = f"entry.calls[{len(self._calls)}]"
            self._calls.append(
                ToolCall(
                    name=mender.mend(f"{field}.name", name),
                    arguments=mender.mend(f"{field}.arguments", arguments),
                    kind=CallKind.of(kind),
                    failed=error is not None,
                    error=mender.mend(f"{field}.error", "" if error is None else error),
                    sensitive=tuple(mender.mend(f"{field}.sensitive", secret) for secret in sensitive),
                )
            )
        self._reporter.repaired(mender)

    def next_iteration(self, phase: Phase, iteration: int | None) -> int:
        """The round's number within its phase: the one given, else one more than the last. Raises ValueError."""
        with self._lock:
            number = self._iterations.get(phase, 0) + 1 if iteration is None else iteration
            if not 1 <= number <= _LARGEST_ITERATION:
                raise ValueError(f"iteration must be 1 to {_LARGEST_ITERATION}, not {number}")
            self._iterations[phase] = number
            return number

    def first_composing(self) -> bool:
        """Whether this is the turn's first message that the client accounts for: only that one is worth a warning."""
        with self._lock:
            first, self._composed_one = not self._composed_one, True
            return first

    def snapshot(self) -> SavedTurn:
        """The turn as it stands, to be saved."""
        with self._lock:
            return replace(self.opening, iterations=dict(self._iterations), calls=tuple(self._calls))
