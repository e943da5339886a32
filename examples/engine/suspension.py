"""A suspended turn as text: the ledger's part from `turn.save`, and the engine's own.

Take from it: save both together. The text goes wherever the engine keeps its state, and `ledger.resume` gives the turn
back in another process or on another node, with the same frozen block, byte for byte.
"""

import json
from dataclasses import dataclass
from typing import Self

from examples.engine.model import Call
from examples.engine.work import Work


@dataclass(frozen=True, slots=True)
class Suspension:
    """The turn as `save` wrote it, what was done, and the call that waits for a person."""

    turn: str
    work: Work
    call: Call

    def dump(self) -> str:
        return json.dumps([self.turn, self.work.lines, self.call.name, self.call.arguments])

    @classmethod
    def load(cls, text: str) -> Self:
        turn, lines, name, arguments = json.loads(text)
        return cls(turn, Work(lines), Call(name, arguments))
