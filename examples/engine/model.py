"""The model, scripted: no network, the same prompt gives the same step. It knows nothing but its prompt.

Take from it: the history needs no code of yours. It stands in the prompt, and what is in the prompt changes what the
model does: a ticket that was opened is not opened again, a reply that was given is not given again, one that nobody
received is.
"""

import json
import re
from dataclasses import dataclass
from typing import Final, Self

INTENT: Final = "Triage this thread: open a ticket unless one is open, page on call, and answer."

#: Labels of the history, as the model reads them.
_REPLIED: Final = "You replied:"
_UNSENT: Final = "You did NOT reply: nobody received this text."


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls a tool. `arguments` is the JSON text as the model wrote it."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The model is done and has this to say."""

    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model understands of a user message. Lines that begin with "| " are quotes, and never a label."""

    history: str
    task: str
    done: str

    @classmethod
    def read(cls, text: str) -> Self:
        before, _, rest = f"\n\n{text}".partition("\n\n## Task\n\n")
        _, _, history = before.partition("\n\n## Earlier in this conversation\n\n")
        task, _, done = rest.partition("\n\n## Already done earlier in this turn\n\n")
        return cls(history, task, done)

    def took_effect(self, tool: str) -> bool:
        """Whether an earlier turn called the tool with success."""
        return re.search(rf"^- {tool}\(.*\) → success$", self.history, re.MULTILINE) is not None

    def said(self, label: str) -> list[str]:
        """The texts under a label of the history, oldest first."""
        quotes = re.findall(rf"^{re.escape(label)}\n((?:\| .*\n?)+)", self.history, re.MULTILINE)
        return [re.sub(r"^\| ", "", quote, flags=re.MULTILINE).strip() for quote in quotes]

    @property
    def last_was_unsent(self) -> bool:
        """Whether the newest earlier turn's text reached nobody."""
        return self.history.rfind(f"\n{_UNSENT}\n") > self.history.rfind(f"\n{_REPLIED}\n")


class Model:
    """The seat's model. `thread` is what it calls its tools with."""

    def step(self, prompt: str, thread: str) -> Call | Answer:
        """What to do next, by the script: read, restart if asked to, open a ticket, page, answer."""
        seen = Prompt.read(prompt)
        for name, arguments, wanted in (
            ("read_thread", {"thread": thread}, True),
            (
                "restart_service",
                {"service": "shop"},
                _asks_for_restart(seen) and not seen.took_effect("restart_service"),
            ),
            ("open_ticket", {"thread": thread, "priority": 2}, not seen.took_effect("open_ticket")),
            ("page_on_call", {"thread": thread}, not seen.history),
        ):
            if wanted and f"- {name}(" not in seen.done:
                return Call(name, json.dumps(arguments))
        return Answer(_answer(seen))

    def review(self, prompt: str) -> str:
        """A reviewer's prose on what landed: by this turn's work alone, since a reviewer gets no history."""
        done = Prompt.read(prompt).done
        landed = re.findall(r"→ ((?:ticket|restart)-\d+)$", done, re.MULTILINE)
        return f"Landed: {', '.join(landed) or 'nothing new'}." + (
            " The page did not go out." if "error:" in done else ""
        )


def _asks_for_restart(seen: Prompt) -> bool:
    return re.search(r"\brestart\b", seen.task, re.IGNORECASE) is not None


def _answer(seen: Prompt) -> str:
    if seen.last_was_unsent:
        return "My last answer did not reach you. Here it is: " + seen.said(_UNSENT)[-1]
    sentences = [_on_ticket(seen), _on_restart(seen)]
    if "page_on_call" in seen.done:
        sentences.append("I could not page anybody: the pager is down.")
    return " ".join(sentence for sentence in sentences if sentence)


def _on_ticket(seen: Prompt) -> str:
    new = re.search(r"→ (ticket-\d+)$", seen.done, re.MULTILINE)
    if new:
        return f"Thank you, I opened {new[1]} for this."
    known = re.findall(r"ticket-\d+", " ".join(seen.said(_REPLIED)))
    return f"As I already wrote, {known[-1] if known else 'your ticket'} is open; I opened no other."


def _on_restart(seen: Prompt) -> str:
    if not _asks_for_restart(seen):
        return ""
    if "restart_service" not in seen.done:
        return "The shop was restarted in an earlier turn, so I did not do it again."
    return "A person said no to the restart." if "refused" in seen.done else "The shop is restarted."
