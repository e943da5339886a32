"""Faults that a person asks for on the command line, so that what follows them can be seen."""

import os
import signal
from dataclasses import dataclass
from typing import Final

#: Where the engine may be told to die, each in its turn's order.
POINTS: Final = {
    "write": "a tool's write took effect, and nothing of the turn is in the ledger",
    "delivery": "the reply was delivered, and nothing of the turn is in the ledger",
    "append": "the turn is in the ledger, and its triggers are not acknowledged",
}


@dataclass(slots=True)
class Faults:
    """`crash_after` names a point; the next `failing_deliveries` deliveries fail."""

    crash_after: str | None = None
    failing_deliveries: int = 0

    def reached(self, point: str) -> None:
        """Die here if that was asked for, as a power cut would have it: no handler, no flush, no goodbye."""
        if point == self.crash_after:
            print(f"\n  SIGKILL: {POINTS[point]}\n", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    def delivery_fails(self) -> bool:
        """Whether this delivery is one of those that fail."""
        self.failing_deliveries -= 1
        return self.failing_deliveries >= 0
