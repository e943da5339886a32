"""Puts a ledger's core together on the real clock and real chance, for both shells."""

import random
import time
from datetime import UTC, datetime

from turnledger.asking import Asker
from turnledger.core import Core
from turnledger.deadlines import Deadlines, Patience
from turnledger.reporter import Reporter


def real_core(deadlines: Deadlines, reporter: Reporter) -> Core:
    """A core that asks within `deadlines` and tells `reporter`."""
    asker = Asker(
        deadlines=deadlines,
        patience=Patience(deadlines.user_message),
        counters=reporter.counters,
        clock=time.monotonic,
        now=lambda: datetime.now(UTC),
        random=random.random,
    )
    return Core(asker, reporter)
