"""Group commit: the jobs of one batch share one transaction, and so one sync of the disk."""

from collections.abc import Callable, Sequence
from typing import Any

import apsw

from sidecar.store.errors import translated
from sidecar.store.observer import StoreObserver
from sidecar.store.transaction import Kind, transaction
from sidecar.store.worker import Job, Outcome, attempt


def commit_together(db: apsw.Connection, jobs: Sequence[Job], observer: StoreObserver) -> list[Outcome[Any]]:
    """Run the jobs in one transaction; each has its answer only once that is on disk.

    Where the shared transaction fails, nothing of it is kept and each job gets a transaction of its own: one bad job
    fails alone. (Savepoints would do the same, and cost every healthy batch.)
    """
    took: list[float] = []
    together = attempt(lambda: _commit(db, jobs, took.append))
    if together.error is None:
        observer.committed(took[0])
        return [Outcome(value=value, committed_s=took[0]) for value in together.value or ()]
    if len(jobs) == 1:
        return [Outcome(error=together.error)]
    return [outcome for job in jobs for outcome in commit_together(db, [job], observer)]


def _commit(db: apsw.Connection, jobs: Sequence[Job], committed: Callable[[float], None]) -> list[Any]:
    with translated(), transaction(db, Kind.IMMEDIATE, committed):
        return [job(db) for job in jobs]
