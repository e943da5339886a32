"""How far long work has come."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total`, in whatever the phase counts; a total of 0 is not known beforehand."""

    phase: str
    done: int
    total: int


Report = Callable[[Progress], None]


def unreported(_: Progress) -> None:
    """For work that nobody watches."""
