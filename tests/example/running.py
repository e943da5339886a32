"""Engines to post to, and what they left behind."""

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from examples.engine.process import EngineProcess, engine_process


def engine(ledger: str, folder: Path, *options: str) -> AbstractAsyncContextManager[EngineProcess]:
    """An engine process of a seat of the test's own, which waits for no long quiet."""
    return engine_process(ledger, folder, "--seat", folder.parent.name, "--quiet", "0.1", "--no-prompts", *options)


def outside(folder: Path, what: str) -> list[dict[str, Any]]:
    """What happened in the outside world, of one kind."""
    return [happening for happening in _rows(folder / "outside.jsonl") if happening["what"] == what]


def replies(folder: Path) -> list[str]:
    """The texts that people received, in order."""
    return [str(reply["text"]) for reply in outside(folder, "reply")]


def rounds(folder: Path) -> list[tuple[str, str]]:
    """Conversation and turn of each executor's round, in order."""
    return [(row["conversation"], row["turn_id"]) for row in _prompts(folder)]


def prompts(folder: Path, conversation: str) -> dict[str, list[str]]:
    """The executor's prompts of each turn in a conversation, in order."""
    turns: dict[str, list[str]] = {}
    for row in _prompts(folder):
        if row["conversation"] == conversation:
            turns.setdefault(row["turn_id"], []).append(row["prompt"])
    return turns


def block(prompt: str) -> str:
    """The history in a prompt, heading included; empty where there is none."""
    _, heading, rest = prompt.partition("## Earlier in this conversation\n")
    return heading + rest.partition("\n\n## Task\n")[0]


def _prompts(folder: Path) -> list[dict[str, Any]]:
    return [row for row in _rows(folder / "prompts.jsonl") if row["phase"] == "execute"]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
