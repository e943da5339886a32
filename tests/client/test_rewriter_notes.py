"""Begin and the notes that a history lacks: made behind the turn, or waited for."""

import asyncio
import threading
import time

import pytest
from turnledger import (
    Deadlines,
    Ledger,
    Reply,
)
from turnledger.v1 import render_pb2

from tests.client.orders import completed, five
from tests.client.rewriters import Heard, Scripted, until
from tests.client.scripted_sidecar import (
    BLOCK,
    KEYS,
    Open,
    Script,
    fails,
    history,
    order,
    says,
    serving,
)

NOTED = BLOCK + "\n| A note."


def noting() -> Script:
    """A sidecar whose history lacks a note until it is asked again."""
    lacking = render_pb2.HistoryResponse(history=history(), orders=[order()])
    return Script(History=[says(lacking), says(render_pb2.HistoryResponse(history=history(NOTED)))])


async def test_begin_waits_for_missing_notes_if_told_to(opened: Open, target: str) -> None:
    """The notes are made first, the history is read once more, and that is what stays frozen."""
    script, heard = noting(), Heard()
    async with serving(script, target), opened(target, rewriter=Scripted(), on_event=heard) as ledger:
        turn = await ledger.begin(**KEYS, wait_for_notes=True)
        assert heard.outcomes == ["accepted"]
    assert turn.history.text == NOTED
    assert len(script.seen["History"]) == 2


async def test_begin_does_not_wait_unless_told_to(opened: Open, target: str) -> None:
    """By default missing notes are made behind the turn, which has the history as it was."""
    script, heard, gate = noting(), Heard(), threading.Event()
    async with serving(script, target), opened(target, rewriter=Scripted(gate=gate), on_event=heard) as ledger:
        turn = await ledger.begin(**KEYS)
        assert turn.history.text == BLOCK
        gate.set()
        await heard.of(1)
    assert len(script.seen["History"]) == 1


async def test_begin_waits_no_longer_than_its_deadline(opened: Open, target: str) -> None:
    """A slow model costs the begin deadline and no more; its note is for the next turn then."""
    script, heard, gate = noting(), Heard(), threading.Event()
    deadlines = Deadlines(begin=0.5)
    async with (
        serving(script, target),
        opened(target, rewriter=Scripted(gate=gate), on_event=heard, deadlines=deadlines) as ledger,
    ):
        began = time.monotonic()
        turn = await ledger.begin(**KEYS, wait_for_notes=True)
        took = time.monotonic() - began
        gate.set()
        await heard.of(1)
    assert turn.history.text == BLOCK
    assert 0.35 < took < 0.9
    assert heard.outcomes == ["accepted"]


async def test_a_second_read_that_fails_leaves_the_first(opened: Open, target: str) -> None:
    """Waiting for notes can only add to what was read."""
    lacking = render_pb2.HistoryResponse(history=history(), orders=[order()])
    script = Script(History=[says(lacking), fails("UNAVAILABLE", "STORE_IO")])
    async with serving(script, target), opened(target, rewriter=Scripted()) as ledger:
        turn = await ledger.begin(**KEYS, wait_for_notes=True)
    assert (turn.history.text, turn.read_failure) == (BLOCK, None)


async def test_a_turn_that_waits_goes_before_others(opened: Open, target: str) -> None:
    """Orders that a turn waits for are next, whatever waits behind turns that are over."""
    gate, heard = threading.Event(), Heard()
    rewriter = Scripted(gate=gate)
    lacking = render_pb2.HistoryResponse(history=history(), orders=[order("urgent")])
    answers = [says(render_pb2.HistoryResponse(history=history())), says(lacking)]
    script = Script(Append=five(), History=answers)
    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard, rewrites_at_once=1) as ledger:
        await completed(ledger)
        await until(lambda: len(rewriter.orders) == 1)
        begun = asyncio.create_task(ledger.begin(**KEYS, wait_for_notes=True))
        await until(lambda: len(script.seen["History"]) == 2)
        await asyncio.sleep(0.1)
        gate.set()
        await begun
        await heard.of(6)
    assert [given.order_id for given in rewriter.orders][:2] == ["o-0", "urgent"]


async def test_without_a_rewriter_orders_are_let_be(opened: Open, target: str) -> None:
    """Nothing is sent, and waiting for notes waits for nothing."""
    script = noting()
    script.behaviours["Append"] = [five()]
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS, wait_for_notes=True)
        await turn.complete(Reply("bye"), trigger="T")
    assert turn.history.text == BLOCK
    assert (len(script.seen["History"]), script.seen["Fit"]) == (1, [])


async def test_a_task_that_is_cancelled_while_it_waits_for_notes_leaves_them_running(target: str) -> None:
    """Begin's caller may go away: its task ends at once, and the notes are for the next turn."""
    script, heard, gate = noting(), Heard(), threading.Event()
    async with serving(script, target), Ledger(target, rewriter=Scripted(gate=gate), on_event=heard) as ledger:
        begun = asyncio.create_task(ledger.begin(**KEYS, wait_for_notes=True))
        await until(lambda: len(script.seen["History"]) == 1)
        await asyncio.sleep(0.05)
        begun.cancel()
        with pytest.raises(asyncio.CancelledError):
            await begun
        gate.set()
        await heard.of(1)
    assert heard.outcomes == ["accepted"]
