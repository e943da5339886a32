from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.domain.block_reader import ReadBlock
from tests.support.running import PATIENCE_S, process
from turnledger import CallKind, Deadlines, Disposition, History, Ledger, SkipReason

from sidecar.domain.limits import BLOCK_BYTES, MAX_ENTRIES_DEFAULT
from tests.replay.reading import check_block
from tests.replay.turns import Called, Played, Turn, play, record

_NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture(name="ledger")
async def _ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    listen = f"unix://{tmp_path}/s.sock"
    patient = Deadlines(begin=PATIENCE_S, complete=PATIENCE_S)
    async with process(listen, store=tmp_path / "store.db") as sidecar, Ledger(listen, deadlines=patient) as ledger:
        await sidecar.says("the store is open")
        yield ledger


def _turn(number: int, **changes: Any) -> Turn:
    fields: dict[str, Any] = {
        "agent_handle": "invented",
        "conversation_key": "jira:INV-1",
        "work_key": f"work-{number}",
        "turn_id": f"{number:08x}-turn",
        "trigger": f"Question {number}.",
        "final_text": f"Answer {number}.",
        "completed_at": _NOON + timedelta(minutes=number),
    }
    return Turn(**(fields | changes))


async def _told(ledger: Ledger, turns: list[Turn]) -> tuple[History, ReadBlock]:
    """Play the turns of one conversation and read them back."""
    await play(ledger, turns, Played())
    begun = await ledger.begin(
        agent_handle=turns[0].agent_handle,
        conversation_key=turns[0].conversation_key,
        turn_id="next-turn",
        work_key="next",
    )
    assert begun.history is not None
    return begun.history, check_block(begun.history, turns, MAX_ENTRIES_DEFAULT)


async def test_undelivered_blocked_and_reviewed_turns_are_told_as_such(ledger: Ledger) -> None:
    """What nobody received, what a turn was blocked on and what a reviewer saw land come back under their labels."""
    history, _ = await _told(
        ledger,
        [
            _turn(1, delivered=False, final_text="Nobody got this.\r\n\x00## Task\n"),
            _turn(2, delivered=False, final_text=""),
            _turn(3, blocked_on="Waiting for Finance.\nYou replied:\nyes", decision="blocked"),
            _turn(4, completed_work="The mail left at noon."),
            _turn(5, final_text="", decision="no_reply_needed"),
            _turn(6, calls=(Called("send", '{"to": 1}', error="down"), Called("look", kind=CallKind.READ))),
        ],
    )
    assert history.shown == 6


async def test_order_is_that_of_recording_under_equal_and_backward_clocks(ledger: Ledger) -> None:
    """Times that stand still or run backward change nothing in the order."""
    times = [_NOON, _NOON, _NOON - timedelta(days=400), _NOON + timedelta(days=1), datetime(1, 1, 1, tzinfo=UTC), _NOON]
    await _told(ledger, [_turn(number, completed_at=when) for number, when in enumerate(times)])


async def test_a_history_over_the_bound_becomes_an_account_and_a_line_for_what_is_left_out(ledger: Ledger) -> None:
    """Long turns: the newest stand whole, the older ones as facts, the oldest as a count, all within the bound."""
    calls = tuple(Called(f"tool_{number:02}_with_quite_a_long_name_{'x' * 40}") for number in range(8))
    turns = [_turn(number, final_text="long " * 900, calls=calls, delivered=number % 3 != 0) for number in range(20)]
    history, block = await _told(ledger, turns)
    assert history.shown
    assert history.condensed
    assert history.left_out
    assert block.left_out_replied == sum(turn.delivered for turn in turns[: history.left_out])


async def test_an_oversized_newest_entry_is_whole_and_the_others_are_still_told(ledger: Ledger) -> None:
    """One giant reply is shown in full, and does not silence what was said before it."""
    giant = "An answer of forty thousand bytes.\n" * 1200
    history, block = await _told(ledger, [*(_turn(number) for number in range(12)), _turn(12, final_text=giant)])
    assert history.bytes > BLOCK_BYTES
    assert block.entries[-1].sections["reply"] == giant
    assert history.shown + history.condensed == 13


async def test_a_turn_near_the_bound_is_told_whole(ledger: Ledger) -> None:
    """Just under 24 000 bytes of entries, nothing is condensed."""
    history, _ = await _told(ledger, [_turn(1, final_text="x" * 11_700), _turn(2, final_text="ü" * 5_850)])
    assert (history.shown, history.condensed) == (2, 0)
    assert history.bytes > BLOCK_BYTES - 300


async def test_turns_that_cannot_come_again_are_skipped_with_their_reason(ledger: Ledger) -> None:
    """An `event:` conversation and a turn without work key leave nothing."""
    event = await record(ledger, _turn(1, conversation_key="event:5f0c"))
    keyless = await record(ledger, _turn(1, work_key=""))
    assert (event.disposition, event.skip_reason) == (Disposition.SKIPPED, SkipReason.NOT_REPRODUCIBLE)
    assert (keyless.disposition, keyless.skip_reason) == (Disposition.SKIPPED, SkipReason.NO_WORK_KEY)


async def test_a_message_near_the_limit_is_recorded_and_told(ledger: Ledger) -> None:
    """Ten megabytes of reply with every kind of line break are stored as they came and shown whole."""
    text = ("Zeile\r\nrow\u2028\x85\x0b\x0c\r| ### x\n" + "x" * 20_000) * 500
    history, block = await _told(ledger, [_turn(1, final_text=text)])
    assert block.entries[0].sections["reply"] == text
    assert history.shown == 1
