"""The outside world, invented: a ticket system, a service to restart, a chat. It survives the engine's crashes.

Take from it: the ledger knows a turn once it is appended. A run that dies before that is run again, and then only an
idempotency key keeps its write from happening twice. A turn's work key is made for that: it is the same in every run.
"""

import json
from pathlib import Path
from typing import Any


class Outside:
    """What happened out there, as a file with one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def happen(self, key: str, what: str, **details: Any) -> str:
        """Let something happen, once for each key; answers its number, such as "ticket-1"."""
        before = self.all()
        for happening in before:
            if happening["key"] == key:
                return str(happening["number"])
        number = f"{what}-{sum(happening['what'] == what for happening in before) + 1}"
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "what": what, "number": number, **details}) + "\n")
        return number

    def all(self) -> list[dict[str, Any]]:
        """All that happened, in order."""
        if not self._path.exists():
            return []
        return [json.loads(line) for line in self._path.read_text(encoding="utf-8").splitlines()]
