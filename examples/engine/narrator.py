"""What the engine tells a person who watches, and the file of prompts.

Take from it: the history is visible. Whoever wants to know why a turn did what it did reads its prompt. The file is as
confidential as the conversations are.
"""

import json
from pathlib import Path
from typing import Final

from turnledger import Event, MessageComposed, Phase

#: What the lines of a prompt begin with.
PROMPT_MARGIN: Final = "      │ "

_COLUMN: Final = 26
_QUOTE: Final = 110
_BY_ITSELF: Final = ", composed without the sidecar, which does not answer"


class Narrator:
    """Prints a line for each thing that happens, and with `show_prompts` the first prompt of each turn."""

    def __init__(self, prompts: Path, *, show_prompts: bool) -> None:
        self._prompts = prompts
        self._show_prompts = show_prompts

    def say(self, conversation: str, text: str) -> None:
        """One line about a conversation."""
        print(f"  {shortened(conversation, _COLUMN):<{_COLUMN}}  {text}", flush=True)

    def prompt(self, conversation: str, turn_id: str, phase: Phase, text: str, *, first: bool) -> None:
        """A prompt, as the model gets it."""
        row = {"conversation": conversation, "turn_id": turn_id, "phase": phase, "prompt": text}
        with self._prompts.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if first and self._show_prompts:
            print("\n".join(PROMPT_MARGIN + line for line in ["", *text.split("\n"), ""]), flush=True)

    def event(self, event: Event) -> None:
        """The ledger's hook: sizes and no text. An engine would feed its metrics from it."""
        if isinstance(event, MessageComposed):
            size = event.size
            self.say(
                event.keys.conversation_key,
                f"{event.phase} round {event.iteration}: prompt of {size.user_bytes} bytes,"
                f" {size.history_bytes} of them history{_BY_ITSELF if event.failure else ''}",
            )


def quoted(text: str) -> str:
    """A text in one line, for a person to recognise it."""
    return f"“{shortened(' '.join(text.split()), _QUOTE)}”"


def shortened(text: str, length: int) -> str:
    """The text, its end left out where it is too long to print, in characters that every terminal can."""
    printable = text.encode("utf-8", "replace").decode()
    return printable if len(printable) <= length else printable[: length - 1] + "…"
