"""Where the play takes place: engines to start and to lose, a sidecar that outlives them, and what is to be seen."""

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from examples.engine.narrator import PROMPT_MARGIN
from examples.engine.process import EngineProcess, engine_process


class Stage:
    """Starts engines on one folder and one ledger, and checks what a scene claims."""

    def __init__(self, ledger: str, folder: Path) -> None:
        self._ledger = ledger
        self._folder = folder
        self._scenes = 0
        self.failed = 0
        self.show_prompts = True

    def scene(self, title: str, about: str) -> None:
        """Begin a scene."""
        self._scenes += 1
        print(f"\n{'─' * 100}\n{self._scenes}. {title}\n   {about}\n", flush=True)

    def engine(self, *options: str) -> AbstractAsyncContextManager[EngineProcess]:
        """An engine as a process of its own; what it prints is shown."""
        return engine_process(self._ledger, self._folder, "--quiet", "0.3", *options, tell=self._tell)

    def see(self, claim: str, *, holds: bool) -> None:
        """Show whether it is as claimed."""
        self.failed += not holds
        print(f"   {'✓' if holds else '✗ NOT SO:'} {claim}", flush=True)

    def outside(self, what: str) -> list[dict[str, Any]]:
        """What happened in the outside world, of one kind."""
        return [happening for happening in self._rows("outside.jsonl") if happening["what"] == what]

    def prompts(self, conversation: str, phase: str = "execute") -> list[str]:
        """The prompts that the model got, in order."""
        rows = self._rows("prompts.jsonl")
        return [row["prompt"] for row in rows if (row["conversation"], row["phase"]) == (conversation, phase)]

    def _tell(self, line: str) -> None:
        if self.show_prompts or not line.startswith(PROMPT_MARGIN):
            print(line, flush=True)

    def _rows(self, name: str) -> list[dict[str, Any]]:
        path = self._folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
