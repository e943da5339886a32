"""Turns as an engine has them, and playing them through the client."""

import asyncio
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from turnledger import CallKind, Ledger, Receipt, Reply, Unsent

#: Names the folder of real inputs; unset where there is none.
FOLDER_VARIABLE: Final = "TURNLEDGER_DATA"

_FILES: Final = ("turns.jsonl", "turns-long.jsonl")


@dataclass(frozen=True)
class Called:
    """One tool call. `error` is None for a call that succeeded."""

    name: str
    arguments: str = "{}"
    kind: CallKind = CallKind.WRITE
    error: str | None = None


@dataclass(frozen=True)
class Turn:
    """One completed turn."""

    agent_handle: str
    conversation_key: str
    work_key: str
    turn_id: str
    trigger: str
    final_text: str
    completed_at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    delivered: bool = True
    intent: str = ""
    calls: tuple[Called, ...] = ()
    completed_work: str = ""
    blocked_on: str = ""
    decision: str = "done"

    @property
    def conversation(self) -> tuple[str, str]:
        return self.agent_handle, self.conversation_key


@dataclass
class Played:
    """What became of the turns, by their place."""

    receipts: dict[int, Receipt] = field(default_factory=dict)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def add(self, place: int, receipt: Receipt) -> None:
        """Note a turn's receipt."""
        async with self._news:
            self.receipts[place] = receipt
            self._news.notify_all()

    async def reaches(self, count: int) -> None:
        """Wait until so many turns have their receipt."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.receipts) >= count)

    def acknowledged(self) -> dict[int, Receipt]:
        return {place: receipt for place, receipt in self.receipts.items() if receipt.failure is None}


def real_turns() -> list[Turn]:
    """Every real turn, each conversation's in its order; none where the variable is unset."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder is None:
        return []
    lines = (line for name in _FILES for line in (Path(folder) / name).read_text(encoding="utf-8").split("\n"))
    return [_turn(json.loads(line)) for line in lines if line]


def by_conversation(turns: Iterable[Turn]) -> dict[tuple[str, str], list[Turn]]:
    """The turns of each seat's conversation, in order."""
    conversations: dict[tuple[str, str], list[Turn]] = {}
    for turn in turns:
        conversations.setdefault(turn.conversation, []).append(turn)
    return conversations


async def play(ledger: Ledger, turns: Sequence[Turn], played: Played, engines: int = 8) -> None:
    """Play the turns by so many engines at once, each conversation's one after another."""
    waiting = list(by_conversation(turns).values())
    places = {id(turn): place for place, turn in enumerate(turns)}

    async def engine() -> None:
        while waiting:
            for turn in waiting.pop():
                await played.add(places[id(turn)], await record(ledger, turn))

    await asyncio.gather(*(engine() for _ in range(engines)))


async def record(ledger: Ledger, turn: Turn) -> Receipt:
    """One turn from its begin to its receipt."""
    begun = await ledger.begin(
        agent_handle=turn.agent_handle,
        conversation_key=turn.conversation_key,
        turn_id=turn.turn_id,
        work_key=turn.work_key,
    )
    for call in turn.calls:
        begun.called(call.name, call.arguments, kind=call.kind, error=call.error)
    return await begun.complete(
        Reply(turn.final_text) if turn.delivered else Unsent(turn.final_text),
        trigger=turn.trigger,
        intent=turn.intent,
        decision=turn.decision,
        completed_work=turn.completed_work,
        blocked_on=turn.blocked_on,
        completed_at=turn.completed_at,
    )


def _turn(row: dict[str, Any]) -> Turn:
    calls = (
        Called(
            call["name"], call["arguments"], CallKind(call["kind"].lower()), call["error"] if call["failed"] else None
        )
        for call in row["calls"]
    )
    kept = {name: row[name] for name in Turn.__dataclass_fields__ if name not in ("calls", "completed_at")}
    return Turn(**kept, calls=tuple(calls), completed_at=datetime.fromisoformat(row["completed_at"]))
