import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.support.running import PATIENCE_S, Process, free_port, process
from turnledger import Deadlines, Disposition, Ledger

from sidecar.domain.limits import MAX_ENTRIES_DEFAULT
from tests.replay.reading import check_block
from tests.replay.turns import FOLDER_VARIABLE, Played, Turn, by_conversation, play, real_turns

pytestmark = pytest.mark.skipif(FOLDER_VARIABLE not in os.environ, reason=f"{FOLDER_VARIABLE} names no folder")

#: A turn that is over can wait for a sidecar that is being restarted.
_PATIENT = Deadlines(begin=PATIENCE_S, complete=PATIENCE_S)


@pytest.fixture(name="turns")
def _turns() -> list[Turn]:
    turns = real_turns()
    assert turns, "the folder of real inputs holds no turn"
    return turns


@pytest.mark.parametrize("transport", ["socket", "tcp"])
async def test_every_real_turn_is_recorded_once_and_told_in_order(
    tmp_path: Path, turns: list[Turn], transport: str
) -> None:
    """All real turns are recorded, once each, and every conversation's block tells its newest, word for word."""
    listen = f"unix://{tmp_path}/s.sock" if transport == "socket" else f"127.0.0.1:{free_port()}"
    async with process(listen, store=tmp_path / "store.db") as sidecar, Ledger(listen, deadlines=_PATIENT) as ledger:
        await sidecar.says("the store is open")
        first, again = Played(), Played()
        await play(ledger, turns, first)
        await play(ledger, turns, again)
        assert {receipt.disposition for receipt in first.receipts.values()} == {Disposition.RECORDED}
        _check_ordinals(turns, first)
        _check_replay(first, again, len(turns))
        await _check_blocks(ledger, turns)


async def test_a_killed_sidecar_loses_and_doubles_no_acknowledged_turn(tmp_path: Path, turns: list[Turn]) -> None:
    """SIGKILL in the middle of a replay, again and again: what was acknowledged is there once, and the rest arrives."""
    listen = f"unix://{tmp_path}/s.sock"
    async with AsyncExitStack() as stack:
        start = _starter(stack, listen, tmp_path / "store.db")
        sidecar = await start()
        ledger = await stack.enter_async_context(Ledger(listen, deadlines=_PATIENT))
        first, again = Played(), Played()
        playing = asyncio.create_task(play(ledger, turns, first))
        for kill in range(1, 4):
            await first.reaches(kill * len(turns) // 5)
            acknowledged = dict(first.acknowledged())
            assert len(acknowledged) < len(turns)
            sidecar.send(signal.SIGKILL)
            await sidecar.ended()
            sidecar = await start()
        await playing
        assert len(first.acknowledged()) == len(turns)
        await play(ledger, turns, again)
        _check_ordinals(turns, first)
        _check_replay(first, again, len(turns))
        await _check_blocks(ledger, turns)


def _starter(stack: AsyncExitStack, listen: str, store: Path) -> Callable[[], Awaitable[Process]]:
    async def start() -> Process:
        sidecar = await stack.enter_async_context(process(listen, store=store))
        await sidecar.says("the store is open")
        return sidecar

    return start


def _check_ordinals(turns: list[Turn], played: Played) -> None:
    ordinals: dict[tuple[str, str], list[int]] = {}
    for place, turn in enumerate(turns):
        ordinals.setdefault(turn.conversation, []).append(played.receipts[place].ordinal)
    for found in ordinals.values():
        assert found == list(range(1, len(found) + 1))


def _check_replay(first: Played, again: Played, count: int) -> None:
    assert len(again.receipts) == count
    for place, receipt in again.receipts.items():
        assert receipt.disposition is Disposition.DUPLICATE
        assert (receipt.entry_id, receipt.ordinal) == (first.receipts[place].entry_id, first.receipts[place].ordinal)


async def _check_blocks(ledger: Ledger, turns: list[Turn]) -> None:
    for (agent_handle, conversation_key), played in by_conversation(turns).items():
        begun = await ledger.begin(
            agent_handle=agent_handle,
            conversation_key=conversation_key,
            turn_id="afterwards",
            work_key=played[0].work_key,
        )
        assert begun.history is not None
        assert begun.already_recorded
        check_block(begun.history, played, MAX_ENTRIES_DEFAULT)
