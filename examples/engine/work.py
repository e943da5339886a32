"""What was done in this turn so far: the engine's own within-turn ledger, shown to the model from the second round on.

Take from it: this is yours, and it carries results. turnledger is told only the calls, by `turn.called`, and only once
the turn is over.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Work:
    """The lines of one turn, and how it renders them."""

    lines: list[str] = field(default_factory=list)

    def add(self, name: str, arguments: str, outcome: str) -> None:
        """One call and what came of it."""
        self.lines.append(f"- {name}({arguments}) → {outcome}")

    def render(self) -> str:
        """The part of the prompt; empty before the first call."""
        return "\n".join(self.lines)
