"""Who is told how the store's threads are doing. Called on those threads, so briefly."""

from typing import Final, Protocol


class StoreObserver(Protocol):
    """Times are seconds."""

    def batch(self, thread: str, jobs: int, waited_s: float, held_s: float) -> None:
        """A thread did a batch of jobs, the oldest of which had waited so long, and was held by it so long."""
        ...

    def committed(self, seconds: float) -> None:
        """A commit, sync included, took so long."""
        ...


class Unobserved:
    """Nobody is told."""

    def batch(self, thread: str, jobs: int, waited_s: float, held_s: float) -> None:
        pass

    def committed(self, seconds: float) -> None:
        pass


UNOBSERVED: Final = Unobserved()
