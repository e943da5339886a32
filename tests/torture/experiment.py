"""What an experiment is, and what it finds."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

#: Told what happens meanwhile, one line at a time: full runs take minutes.
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise that was put to the test: how, in figures; and each way in which it was broken."""

    promise: str
    figures: str
    broken: Sequence[str] = ()

    @property
    def held(self) -> bool:
        """Whether nothing broke it."""
        return not self.broken


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is tried. `quick` is for the quick tests: seconds, every path once. `seed` makes a run happen again."""

    quick: bool
    seed: int


#: Works in the folder, which is its own and empty.
Run = Callable[[Path, Scale, Say], Coroutine[Any, Any, Sequence[Finding]]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """One attempt to break the product. `about` is a line for whoever chooses what to run."""

    name: str
    about: str
    run: Run


def silent(_: str) -> None:
    """Say nothing."""


QUICK: Final = Scale(quick=True, seed=1)


def require_held(findings: Sequence[Finding]) -> None:
    """Fail with what was broken. No finding at all is a failure too: then nothing was tried."""
    assert findings
    broken = [f"{finding.promise}: {way}" for finding in findings for way in finding.broken]
    assert not broken, "\n".join(broken)
