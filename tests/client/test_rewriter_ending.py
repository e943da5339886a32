"""When orders end: deadlines, calls that were given up, and a ledger that closes."""

import asyncio
import threading
import time

from turnledger import (
    Deadlines,
    Ledger,
    Order,
    Reply,
)

from tests.client.orders import completed, five
from tests.client.rewriters import Heard, Scripted, until
from tests.client.scripted_sidecar import (
    KEYS,
    Open,
    Script,
    judges,
    order,
    serving,
    slowly,
    with_orders,
)


async def test_a_hanging_model_ends_at_the_deadline(opened: Open, target: str) -> None:
    """All orders of a batch share one deadline, those that never got a call included."""
    gate, heard = threading.Event(), Heard()
    deadlines = Deadlines(rewrite=0.4)
    async with (
        serving(Script(Append=five()), target),
        opened(target, rewriter=Scripted(gate=gate), on_event=heard, deadlines=deadlines, rewrites_at_once=2) as ledger,
    ):
        began = time.monotonic()
        await completed(ledger)
        assert time.monotonic() - began < 0.3
        await heard.of(5)
        took = time.monotonic() - began
        stats = ledger.stats
        gate.set()
    assert heard.outcomes == ["deadline"] * 5
    assert [event.calls for event in heard.filled].count(1) == 2
    assert 0.35 < took < 1.5
    assert (stats.orders_deadline, stats.rewriter_calls) == (5, 2)


async def test_calls_that_were_given_up_keep_their_place(opened: Open, target: str) -> None:
    """A plain function that hangs cannot be stopped: others do not come on top, and its place is free once it ends."""
    gate, heard = threading.Event(), Heard()
    rewriter = Scripted(gate=gate)
    script = Script(Append=[with_orders(order("o-1")), with_orders(order("o-2")), with_orders(order("o-3"))])
    deadlines = Deadlines(rewrite=0.2)
    async with (
        serving(script, target),
        opened(target, rewriter=rewriter, on_event=heard, deadlines=deadlines, rewrites_at_once=1) as ledger,
    ):
        await completed(ledger)
        await heard.of(1)
        await completed(ledger)
        await heard.of(2)
        gate.set()
        await until(lambda: rewriter._running == 0)
        await completed(ledger)
        await heard.of(3)
    assert heard.outcomes == ["deadline", "deadline", "accepted"]
    assert (rewriter.most, len(rewriter.orders)) == (1, 2)


async def test_close_lets_orders_end(opened: Open, target: str) -> None:
    """A ledger that is closed right after its last turn still fills what that turn left."""
    heard, rewriter = Heard(), Scripted(seconds=0.1)
    async with serving(Script(Append=five()), target):
        async with opened(target, rewriter=rewriter, on_event=heard) as ledger:
            await completed(ledger)
        assert heard.outcomes == ["accepted"] * 5


async def test_close_gives_a_hanging_model_up_within_its_bound(opened: Open, target: str) -> None:
    """After `Deadlines.close`, and half a second at most, everything is over and told."""
    gate, heard = threading.Event(), Heard()
    deadlines = Deadlines(close=0.3)
    async with serving(Script(Append=five()), target):
        async with opened(target, rewriter=Scripted(gate=gate), on_event=heard, deadlines=deadlines) as ledger:
            await completed(ledger)
            began = time.monotonic()
        took = time.monotonic() - began
        assert heard.outcomes == ["abandoned"] * 5
        assert 0.25 < took < 1.2
        await until(lambda: not [each for each in threading.enumerate() if each.name == "turnledger-orders"])
        gate.set()
        await until(lambda: not [each for each in threading.enumerate() if each.name == "turnledger-rewriter"])


async def test_close_leaves_no_task_behind(target: str) -> None:
    """An async rewriter that hangs, even one that will not be cancelled at once, ends with its ledger."""
    heard, cancelled = Heard(), []
    before = asyncio.all_tasks()

    async def rewriter(_order: Order) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(1)
            await asyncio.sleep(0.05)
            raise
        return ""

    async with serving(Script(Append=five()), target):
        before = asyncio.all_tasks()
        async with Ledger(target, rewriter=rewriter, on_event=heard, deadlines=Deadlines(close=0.1)) as ledger:
            await completed(ledger)
        left = {task for task in asyncio.all_tasks() - before if "turnledger" in repr(task)}
    assert left == set()
    assert len(cancelled) == 3
    assert heard.outcomes == ["abandoned"] * 5


async def test_a_rewriter_that_will_not_be_cancelled_does_not_hold_close(target: str) -> None:
    """Close's bound holds against a coroutine that swallows its cancellation."""
    over = asyncio.Event()

    async def rewriter(_order: Order) -> str:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue
        return ""

    async with serving(Script(Append=five()), target):
        async with Ledger(target, rewriter=rewriter, deadlines=Deadlines(close=0.1)) as ledger:
            await completed(ledger)
            began = time.monotonic()
        assert time.monotonic() - began < 1.2
        over.set()


async def test_a_closed_ledger_starts_nothing(opened: Open, target: str) -> None:
    """Close may be called twice, and a call that comes after it fails as before."""
    rewriter = Scripted()
    async with serving(Script(Append=five()), target), opened(target, rewriter=rewriter) as ledger:
        turn = await ledger.begin(**KEYS)
        await ledger.close()
        await ledger.close()
        receipt = await turn.complete(Reply("bye"), trigger="T")
    assert receipt.failure.reason == "CLOSED"
    assert rewriter.orders == []


async def test_an_async_rewriter_is_cancelled_at_the_deadline(target: str) -> None:
    """What runs past its time is told so, and its place is free again."""
    cancelled, heard = [], Heard()

    async def rewriter(_order: Order) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(1)
            raise
        return ""

    script = Script(Append=[with_orders(order("o-1")), with_orders(order("o-2"))])
    async with serving(script, target):
        deadlines = Deadlines(rewrite=0.15)
        async with Ledger(target, rewriter=rewriter, on_event=heard, deadlines=deadlines, rewrites_at_once=1) as ledger:
            await completed(ledger)
            await heard.of(1)
            await completed(ledger)
            await heard.of(2)
    assert heard.outcomes == ["deadline", "deadline"]
    assert len(cancelled) == 2


async def test_drain_says_whether_all_orders_are_over(opened: Open, target: str) -> None:
    """It waits no longer than it is told to, and not at all where nothing is under way."""
    gate = threading.Event()
    async with serving(Script(Append=five()), target), opened(target, rewriter=Scripted(gate=gate)) as ledger:
        assert await ledger.drain(0.01)
        await completed(ledger)
        assert not await ledger.drain(0.05)
        gate.set()
        assert await ledger.drain(20)
        assert ledger.stats.orders_accepted == 5
    async with serving(Script(), target), opened(target) as ledger:
        assert await ledger.drain(0)


async def test_a_turn_that_ends_while_the_ledger_closes_leaves_its_orders(opened: Open, target: str) -> None:
    """A ledger that is closing takes no further orders, and what it has goes on."""
    gate, heard = threading.Event(), Heard()
    script = Script(Append=[five(), with_orders(order("o-9"))])
    async with (
        serving(script, target),
        opened(target, rewriter=Scripted(gate=gate), on_event=heard, deadlines=Deadlines(close=20)) as ledger,
    ):
        await completed(ledger)
        turn = await ledger.begin(**KEYS)
        closing = asyncio.create_task(ledger.close())
        await asyncio.sleep(0.1)
        receipt = await turn.complete(Reply("bye"), trigger="T")
        gate.set()
        await closing
    assert receipt.in_ledger
    assert heard.outcomes == ["accepted"] * 5


async def test_a_slow_sidecar_still_gets_a_rewrite_that_came_in_time(opened: Open, target: str) -> None:
    """A rewrite is paid for: handing it in may take a moment past the orders' own deadline."""
    heard = Heard()
    script = Script(Append=with_orders(order()), Fit=slowly(judges(), 0.4))
    deadlines = Deadlines(rewrite=0.3)
    async with (
        serving(script, target),
        opened(target, rewriter=Scripted(), on_event=heard, deadlines=deadlines) as ledger,
    ):
        await completed(ledger)
        await heard.of(1)
    assert heard.outcomes == ["accepted"]
