"""Puts a ledger's core together on the real clock and real chance, for both shells."""

import random
import time
from datetime import UTC, datetime

from turnledger.asking import Asker
from turnledger.deadlines import Deadlines, Patience
from turnledger.filling import Filler
from turnledger.reporter import Reporter


def real_asker(deadlines: Deadlines, reporter: Reporter) -> Asker:
    """Asks within `deadlines`."""
    return Asker(
        deadlines=deadlines,
        patience=Patience(deadlines.user_message),
        counters=reporter.counters,
        clock=time.monotonic,
        now=lambda: datetime.now(UTC),
        random=random.random,
    )


def real_filler(rewriter: object, at_once: int, asker: Asker, reporter: Reporter) -> Filler | None:
    """Fills orders, `at_once` at a time, where the engine gave a rewriter. Raises ValueError."""
    filler = Filler(asker, reporter, at_once)
    return None if rewriter is None else filler
