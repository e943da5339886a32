"""The example engine on real webhooks."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from examples.engine.process import EngineProcess
from tests.example.running import block, engine, prompts
from tests.replay.turns import FOLDER_VARIABLE

HEADERS = {"github": "X_GitHub_Event", "gitlab": "X_Gitlab_Event"}
#: So many conversations get a second turn.
CONVERSATIONS = 4


def _real_conversations() -> list[list[dict[str, Any]]]:
    """For each source, the webhooks of the conversation that has the most of them."""
    lines = (Path(os.environ[FOLDER_VARIABLE]) / "triggers.jsonl").read_text(encoding="utf-8").split("\n")
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in map(json.loads, filter(None, lines)):
        if not row["conversation_key"].startswith("event:"):
            found.setdefault(row["source"], {}).setdefault(row["conversation_key"], []).append(row)
    return [max(conversations.values(), key=len) for conversations in found.values()]


async def _post(running: EngineProcess, webhooks: list[dict[str, Any]]) -> None:
    """Post them one after another, each when the turns before are over."""
    for row in webhooks:
        headers = {HEADERS[row["source"]]: row["event"]} if row["source"] in HEADERS else {}
        status, answer = await running.post(f"/webhooks/{row['source']}", row["payload"], **headers)
        assert (status, answer["conversation"]) == (202, row["conversation_key"])
        await running.idle()


@pytest.mark.skipif(FOLDER_VARIABLE not in os.environ, reason=f"{FOLDER_VARIABLE} names no folder of real webhooks")
async def test_real_webhooks_have_a_second_turn_that_knows_the_first(ledger: str, folder: Path) -> None:
    """Of each source a real conversation: after its first webhook was answered, its next turn is told that answer."""
    conversations = _real_conversations()
    async with engine(ledger, folder) as running:
        await asyncio.gather(*(_post(running, webhooks[:6]) for webhooks in conversations))
    knowing = 0
    for webhooks in conversations:
        first, *later = prompts(folder, webhooks[0]["conversation_key"]).values()
        assert block(first[0]) == ""
        for turn in later[:1]:
            assert "You replied:\n| Thank you, I opened ticket-" in block(turn[0])
            knowing += 1
    assert knowing == CONVERSATIONS
