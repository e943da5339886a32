"""Who is told what the services did: words and numbers of the domain, never a key and never a text."""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol


class ServiceObserver(Protocol):
    """Sizes are bytes of UTF-8, times seconds; what is counted is named as the contract names it, in lower case."""

    def appended(self, disposition: str, skip_reason: str | None, orders: Iterable[str]) -> None:
        """An Append was answered, with orders of these kinds."""
        ...

    def judged(self, kind: str, verdict: str) -> None:
        """A rewrite was judged; its kind is `unknown` where it is for no order of ours."""
        ...

    def settled(self, outcome: str) -> None:
        """A Settle was answered."""
        ...

    def forgot(self, turns: int) -> None:
        """So many turns were erased."""
        ...

    def read_history(self, state: str, size: int, entries: Mapping[str, int], orders: Iterable[str]) -> None:
        """A History was answered: its size, its entries by what became of them, and orders of these kinds."""
        ...

    def composed(self, phase: str, size: int, parts: Mapping[str, int]) -> None:
        """A round's message was composed of parts of these sizes."""
        ...

    def swept(self, seconds: float, taken: Mapping[str, int]) -> None:
        """A sweep took so many rows, entries and digests away."""
        ...

    def sweep_failed(self) -> None:
        """A sweep ended in an error."""
        ...

    def rows(self, rows: Mapping[str, int]) -> None:
        """The store's rows were counted."""
        ...


class Unobserved:
    """Nobody is told."""

    def appended(self, disposition: str, skip_reason: str | None, orders: Iterable[str]) -> None:
        pass

    def judged(self, kind: str, verdict: str) -> None:
        pass

    def settled(self, outcome: str) -> None:
        pass

    def forgot(self, turns: int) -> None:
        pass

    def read_history(self, state: str, size: int, entries: Mapping[str, int], orders: Iterable[str]) -> None:
        pass

    def composed(self, phase: str, size: int, parts: Mapping[str, int]) -> None:
        pass

    def swept(self, seconds: float, taken: Mapping[str, int]) -> None:
        pass

    def sweep_failed(self) -> None:
        pass

    def rows(self, rows: Mapping[str, int]) -> None:
        pass


UNOBSERVED: Final = Unobserved()
