"""The rewriter against a scripted sidecar on a real socket: which orders are run, how often, and who hears of it."""

import asyncio
import contextvars
import functools
import logging
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from turnledger import (
    BlockingLedger,
    Deadlines,
    FillOutcome,
    Ledger,
    NoBudget,
    Order,
    OrderKind,
    Reply,
    Rewrite,
    Verdict,
)
from turnledger.v1 import entry_pb2, render_pb2

from tests.client.rewriters import Heard, Scripted, until
from tests.client.scripted_sidecar import (
    BLOCK,
    KEYS,
    Open,
    Script,
    fails,
    history,
    judges,
    order,
    says,
    serving,
    slowly,
    with_orders,
)

NOTED = BLOCK + "\n| A note."


def five() -> Any:
    """An Append that names five orders."""
    return with_orders(*(order(f"o-{number}") for number in range(5)))


async def completed(ledger: Any, **options: Any) -> Any:
    """A turn from its begin to its receipt."""
    turn = await ledger.begin(**KEYS)
    return await turn.complete(Reply("bye"), trigger="T", **options)


async def test_orders_are_filled_behind_the_answer(opened: Open, target: str) -> None:
    """`complete` returns while the model still thinks; the rewrite goes back beside the order's text."""
    gate, heard = threading.Event(), Heard()
    rewriter = Scripted(Rewrite("shorter", 11, 3), gate=gate)
    argument = order(text="long", kind=entry_pb2.ORDER_KIND_ARGUMENT)
    script = Script(Append=with_orders(argument))
    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard) as ledger:
        receipt = await completed(ledger)
        assert receipt.in_ledger
        assert script.seen["Fit"] == []
        gate.set()
        (filled,) = await heard.of(1)
        stats = ledger.stats
    (given,) = rewriter.orders
    assert (given.order_id, given.kind, given.text, given.limit_bytes) == ("o-1", OrderKind.ARGUMENT, "long", 400)
    assert (given.prompt, given.agent_handle, given.attempt) == ("Shorter.\nlong\nShorter.", "support", 1)
    assert (given.rejection, given.over_by_bytes, given.remark) == (None, 0, "")
    assert 0 < given.seconds <= Deadlines().rewrite
    (asked,) = script.seen["Fit"]
    assert (asked.agent_handle, asked.conversation_key) == ("support", "jira:POC-7")
    assert [(fit.order_id, fit.original, fit.rewrite) for fit in asked.fits] == [("o-1", "long", "shorter")]
    assert (filled.outcome, filled.verdict, filled.calls) == (FillOutcome.ACCEPTED, Verdict.ACCEPTED, 1)
    assert (filled.prompt_tokens, filled.completion_tokens) == (11, 3)
    assert (stats.orders_accepted, stats.rewriter_calls) == (1, 1)
    assert (stats.rewriter_prompt_tokens, stats.rewriter_completion_tokens) == (11, 3)


async def test_a_notes_original_stays_at_home(opened: Open, target: str) -> None:
    """A note's original is the entry, which the sidecar has: its text is not sent back."""
    heard, script = Heard(), Script(Append=with_orders(order()))
    async with serving(script, target), opened(target, rewriter=Scripted(), on_event=heard) as ledger:
        await completed(ledger)
        await heard.of(1)
    assert [fit.original for asked in script.seen["Fit"] for fit in asked.fits] == [""]


@pytest.mark.parametrize(
    ("verdict", "over"), [("TOO_LONG", 57), ("EMPTY", 0), ("ECHO", 0), ("INVENTED", 0), ("INVALID_TEXT", 0)]
)
async def test_a_rejected_rewrite_is_tried_once_more_and_told_why(
    opened: Open, target: str, verdict: str, over: int
) -> None:
    """The second call knows the verdict and the excess; a second rejection is the end, for later turns too."""
    heard, rewriter = Heard(), Scripted()
    script = Script(Append=with_orders(order()), Fit=judges(verdict, over))
    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard) as ledger:
        await completed(ledger)
        (filled,) = await heard.of(1)
        await completed(ledger)
        stats = ledger.stats
    first, second = rewriter.orders
    assert (first.attempt, second.attempt) == (1, 2)
    assert (second.rejection, second.over_by_bytes) == (Verdict(verdict.lower()), over)
    assert second.remark
    assert (str(over) in second.remark) is (over > 0)
    assert second.prompt == first.prompt
    assert (filled.outcome, filled.verdict, filled.calls) == (FillOutcome.REJECTED, second.rejection, 2)
    assert (stats.orders_rejected, stats.rewriter_calls, len(heard.filled)) == (1, 2, 1)


async def test_a_better_second_try_is_accepted(opened: Open, target: str) -> None:
    """What the retry mends is accepted, and both calls are counted."""
    heard, rewriter = Heard(), Scripted(Rewrite("long", 5, 50), Rewrite("short", 6, 2))
    script = Script(Append=with_orders(order()), Fit=[judges("TOO_LONG", 9), judges()])
    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard) as ledger:
        await completed(ledger)
        (filled,) = await heard.of(1)
    assert (filled.outcome, filled.calls) == (FillOutcome.ACCEPTED, 2)
    assert (filled.prompt_tokens, filled.completion_tokens) == (11, 52)


@pytest.mark.parametrize("verdict", ["NOT_OPEN", "ORIGINAL_MISMATCH"])
async def test_an_order_that_is_over_is_not_tried_again(opened: Open, target: str, verdict: str) -> None:
    """Where no rewrite could be taken any more, the model is not asked again."""
    heard, rewriter = Heard(), Scripted()
    script = Script(Append=with_orders(order()), Fit=judges(verdict))
    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard) as ledger:
        await completed(ledger)
        (filled,) = await heard.of(1)
    assert (filled.outcome, filled.verdict, len(rewriter.orders)) == ("rejected", verdict.lower(), 1)


async def test_no_budget_ends_its_batch_and_no_other(opened: Open, target: str) -> None:
    """After the first NoBudget no order of that answer is run; the next turn's are asked for anew."""
    heard, rewriter = Heard(), Scripted("shorter", NoBudget(), "shorter")
    script = Script(Append=[five(), with_orders(order("o-9"))])
    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard, rewrites_at_once=1) as ledger:
        await completed(ledger)
        await heard.of(5)
        assert heard.outcomes == ["accepted"] + ["no_budget"] * 4
        assert [event.calls for event in heard.filled] == [1, 1, 0, 0, 0]
        await completed(ledger)
        await heard.of(6)
        stats = ledger.stats
    assert heard.outcomes[-1] == "accepted"
    assert len(rewriter.orders) == 3
    assert (stats.orders_no_budget, stats.orders_accepted, stats.rewriter_calls) == (4, 2, 3)


async def test_no_budget_allows_no_retry(opened: Open, target: str) -> None:
    """A retry is a call like any other: it is not made once the batch has found no budget."""
    heard, rewriter = Heard(), Scripted("long", NoBudget())
    script = Script(Append=with_orders(order()), Fit=judges("TOO_LONG", 1))
    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard) as ledger:
        await completed(ledger)
        (filled,) = await heard.of(1)
    assert (filled.outcome, filled.verdict, filled.calls) == ("no_budget", "too_long", 2)


async def test_a_batch_without_budget_allows_no_retry_of_others(opened: Open, target: str) -> None:
    """What was rejected stays so when another order of its batch has found no budget meanwhile."""
    heard, rewriter = Heard(), Scripted("long", NoBudget())
    script = Script(Append=with_orders(order("o-1"), order("o-2")), Fit=slowly(judges("TOO_LONG", 1), 0.4))
    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard, rewrites_at_once=2) as ledger:
        await completed(ledger)
        await heard.of(2)
    assert [(event.outcome, event.calls) for event in heard.filled] == [("no_budget", 1), ("rejected", 1)]


class Weird(BaseException):
    """What no `except Exception` catches."""


RAISED = [
    ValueError("secret"),
    RuntimeError(),
    StopIteration(),
    StopAsyncIteration(),
    Weird(),
    SystemExit(3),
    GeneratorExit(),
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    TimeoutError(),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
async def test_whatever_a_rewriter_raises_is_reported_and_no_more(
    opened: Open, target: str, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    """A turn never meets it; its type is told, its text is not, and the next order is run."""
    heard, rewriter = Heard(), Scripted(error, "shorter")
    script = Script(Append=with_orders(order("o-1"), order("o-2")))
    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard, rewrites_at_once=1) as ledger:
        receipt = await completed(ledger)
        await heard.of(2)
        stats = ledger.stats
    assert receipt.failure is None
    assert heard.outcomes == ["error", "accepted"]
    assert heard.filled[0].error == type(error).__name__
    assert (stats.orders_error, stats.orders_accepted) == (1, 1)
    assert type(error).__name__ in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("error", [each for each in RAISED if type(each) is not KeyboardInterrupt], ids=repr)
async def test_an_async_rewriter_may_raise_all_of_it_too(target: str, error: BaseException) -> None:
    """In the event loop as in a thread; a CancelledError that nobody asked for is an error like others."""
    heard = Heard()

    async def rewriter(_order: Order) -> str:
        raise error

    async with serving(Script(Append=five()), target), Ledger(target, rewriter=rewriter, on_event=heard) as ledger:
        await completed(ledger)
        await heard.of(5)
    assert heard.outcomes == ["error"] * 5


NO_REWRITES: list[Any] = [None, 5, b"x", ["x"], Rewrite("x", -1)]
WRONG: list[Any] = [(None,), ("x", 0, "3")]
NO_REWRITES += [Rewrite(*wrong) for wrong in WRONG]


@pytest.mark.parametrize("answer", NO_REWRITES, ids=repr)
async def test_what_is_no_rewrite_is_an_error(opened: Open, target: str, answer: object) -> None:
    """A rewriter that returns something else fills nothing, and nothing is sent."""
    heard, script = Heard(), Script(Append=with_orders(order()))
    async with serving(script, target), opened(target, rewriter=Scripted(answer), on_event=heard) as ledger:
        await completed(ledger)
        (filled,) = await heard.of(1)
    assert (filled.outcome, filled.error, script.seen["Fit"]) == ("error", "TypeError", [])


async def test_lone_surrogates_of_a_model_are_repaired(opened: Open, target: str) -> None:
    """A rewrite that no UTF-8 has is sent with U+FFFD in its place, for the sidecar to judge."""
    heard, script = Heard(), Script(Append=with_orders(order()))
    async with serving(script, target), opened(target, rewriter=Scripted("a\ud800b"), on_event=heard) as ledger:
        await completed(ledger)
        await heard.of(1)
    assert script.seen["Fit"][0].fits[0].rewrite == "a\ufffdb"


@pytest.mark.parametrize("bound", [1, 3])
async def test_never_more_calls_at_once_than_allowed(opened: Open, target: str, bound: int) -> None:
    """Whatever the number of turns that end at once, so many calls are made at once, and no more."""
    heard, rewriter = Heard(), Scripted(seconds=0.02)
    script = Script(Append=[with_orders(*(order(f"{n}-{k}") for k in range(5))) for n in range(4)])
    async with (
        serving(script, target),
        opened(target, rewriter=rewriter, on_event=heard, rewrites_at_once=bound) as ledger,
    ):
        await asyncio.gather(*(completed(ledger) for _ in range(4)))
        await heard.of(20)
    assert (rewriter.most, len(rewriter.orders), set(heard.outcomes)) == (bound, 20, {"accepted"})


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


async def test_an_order_is_never_run_twice_at_the_same_time(opened: Open, target: str) -> None:
    """Append and History may both name it while it is under way: one call, one event."""
    gate, heard = threading.Event(), Heard()
    rewriter = Scripted(gate=gate)
    missing = render_pb2.HistoryResponse(history=history(), orders=[order()])
    script = Script(Append=with_orders(order()), History=says(missing))
    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard) as ledger:
        for _ in range(3):
            await completed(ledger)
        await until(lambda: len(rewriter.orders) == 1)
        gate.set()
        await heard.of(1)
    assert (len(rewriter.orders), len(heard.filled), len(script.seen["Fit"])) == (1, 1, 1)


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


async def test_a_turn_that_its_budget_ended_runs_nothing(opened: Open, target: str) -> None:
    """`rewrite=False` records the turn and leaves its orders open."""
    rewriter = Scripted()
    script = Script(Append=five())
    async with serving(script, target), opened(target, rewriter=rewriter) as ledger:
        receipt = await completed(ledger, rewrite=False)
    assert receipt.in_ledger
    assert (rewriter.orders, script.seen["Fit"]) == ([], [])


async def test_without_a_rewriter_orders_are_let_be(opened: Open, target: str) -> None:
    """Nothing is sent, and waiting for notes waits for nothing."""
    script = noting()
    script.behaviours["Append"] = [five()]
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS, wait_for_notes=True)
        await turn.complete(Reply("bye"), trigger="T")
    assert turn.history.text == BLOCK
    assert (len(script.seen["History"]), script.seen["Fit"]) == (1, [])


async def test_an_order_of_an_unknown_kind_costs_nothing(opened: Open, target: str) -> None:
    """A newer sidecar's order is left open, and the turn is recorded all the same."""
    heard, rewriter = Heard(), Scripted()
    script = Script(Append=with_orders(order("o-1", kind=77), order("o-2")))
    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard) as ledger:
        receipt = await completed(ledger)
        await heard.of(1)
    assert receipt.in_ledger
    assert [given.order_id for given in rewriter.orders] == ["o-2"]


async def test_a_fit_is_sent_again_while_the_contract_allows(opened: Open, target: str) -> None:
    """A store that comes back gets the rewrite; one that is full does not, which is told and counted."""
    heard = Heard()
    script = Script(
        Append=[with_orders(order("o-1")), with_orders(order("o-2"))],
        Fit=[fails("UNAVAILABLE", "STORE_IO"), judges(), fails("RESOURCE_EXHAUSTED", "STORE_FULL")],
    )
    async with serving(script, target), opened(target, rewriter=Scripted(), on_event=heard) as ledger:
        await completed(ledger)
        await heard.of(1)
        await completed(ledger)
        await heard.of(2)
        stats = ledger.stats
    assert heard.outcomes == ["accepted", "not_sent"]
    assert heard.filled[1].failure is not None
    assert heard.filled[1].failure.reason == "STORE_FULL"
    assert (stats.orders_not_sent, stats.retries) == (1, 1)


async def test_an_answer_that_judges_something_else_is_no_verdict(opened: Open, target: str) -> None:
    """A Fit that answers no result, or an unknown verdict, is a bad answer."""
    heard, script = Heard(), Script(Append=with_orders(order()), Fit=says(b""))
    async with serving(script, target), opened(target, rewriter=Scripted(), on_event=heard) as ledger:
        await completed(ledger)
        (filled,) = await heard.of(1)
    assert filled.failure is not None
    assert (filled.outcome, filled.failure.reason) == ("not_sent", "BAD_ANSWER")


class Called:
    """An object that is called like an async function."""

    async def __call__(self, _order: Order) -> str:
        return "shorter"


async def plainly_async(_more: int, _order: Order) -> str:
    """An async function, to be bound."""
    return "shorter"


def decorated(this: Order) -> Any:
    """A plain function that returns an awaitable."""
    return plainly_async(1, this)


@pytest.mark.parametrize(
    "rewriter", [Called(), functools.partial(plainly_async, 1), decorated], ids=["object", "partial", "decorated"]
)
async def test_a_rewriter_may_be_async_in_many_ways(target: str, rewriter: Any) -> None:
    """An object, a bound function, and a function that was decorated into a plain one."""
    heard = Heard()
    async with serving(Script(Append=five()), target), Ledger(target, rewriter=rewriter, on_event=heard) as ledger:
        await completed(ledger)
        await heard.of(5)
    assert heard.outcomes == ["accepted"] * 5


async def test_a_plain_function_never_blocks_the_event_loop(target: str) -> None:
    """While it sleeps, the loop goes on."""
    heard = Heard()
    async with (
        serving(Script(Append=five()), target),
        Ledger(target, rewriter=Scripted(seconds=0.3), on_event=heard) as ledger,
    ):
        await completed(ledger)
        longest, last = 0.0, time.monotonic()
        while len(heard.filled) < 5:
            await asyncio.sleep(0.005)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
    assert longest < 0.25


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


async def test_an_order_runs_in_the_context_of_its_turn(opened: Open, target: str) -> None:
    """What the engine's task carries (its trace above all) reaches the rewriter, though one worker serves two turns."""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("turn", default="none")
    seen, heard, gate = [], Heard(), threading.Event()

    def rewriter(this: Order) -> str:
        gate.wait(5)
        seen.append((this.order_id, variable.get()))
        return "shorter"

    script = Script(Append=[with_orders(order("a")), with_orders(order("b"))])

    async def one(name: str) -> None:
        variable.set(name)
        await completed(ledger)

    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard, rewrites_at_once=1) as ledger:
        await asyncio.create_task(one("a"))
        await asyncio.create_task(one("b"))
        gate.set()
        await heard.of(2)
    assert seen == [("a", "a"), ("b", "b")]


async def test_a_crowd_is_turned_away(opened: Open, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the bound of the queue further orders are given up at once, so that memory stays bounded."""
    monkeypatch.setattr("turnledger.order_queue.WAITING_ORDERS", 3)
    heard, gate = Heard(), threading.Event()
    async with (
        serving(Script(Append=five()), target),
        opened(target, rewriter=Scripted(gate=gate), on_event=heard) as ledger,
    ):
        await completed(ledger)
        assert heard.outcomes == ["abandoned"] * 2
        gate.set()
        await heard.of(5)
    assert heard.outcomes[2:] == ["accepted"] * 3


class NoThread(threading.Thread):
    """A thread that the system has no room for."""

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


async def test_a_system_without_threads_costs_no_turn(
    opened: Open, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no thread can be started the orders are given up, and the turn is recorded all the same."""
    room = SimpleNamespace(Thread=NoThread, Condition=threading.Condition, current_thread=threading.current_thread)
    monkeypatch.setattr("turnledger.thread_crew.threading", room)
    heard = Heard()
    async with serving(Script(Append=five()), target), opened(target, rewriter=Scripted(), on_event=heard) as ledger:
        receipt = await completed(ledger)
        await heard.of(5)
        assert await ledger.drain(1)
    assert receipt.in_ledger
    assert set(heard.outcomes) <= {"error", "abandoned"}


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


async def test_a_hook_that_fails_does_not_stop_the_orders(opened: Open, target: str) -> None:
    """What `on_event` raises is counted, and the next order is run."""

    def hook(event: object) -> None:
        raise ValueError(type(event).__name__)

    async with serving(Script(Append=five()), target), opened(target, rewriter=Scripted(), on_event=hook) as ledger:
        await completed(ledger)
        await until(lambda: ledger.stats.orders_accepted == 5)


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


def test_what_cannot_rewrite_is_refused_at_once(target: str) -> None:
    """A rewriter that is none, an async one for threads, or a bound below 1 is the engine's own fault."""
    with pytest.raises(TypeError, match="callable"):
        Ledger(target, rewriter="no")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="callable"):
        BlockingLedger(target, rewriter="no")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="plain function"):
        BlockingLedger(target, rewriter=Called())  # type: ignore[arg-type]
    for shell in (Ledger, BlockingLedger):
        with pytest.raises(ValueError, match="rewrites_at_once"):
            shell(target, rewrites_at_once=0)


async def test_nothing_of_an_order_is_logged(opened: Open, target: str, caplog: pytest.LogCaptureFixture) -> None:
    """At every level, neither the text nor the rewrite nor what the rewriter raised."""
    caplog.set_level(logging.DEBUG, logger="turnledger")
    heard, rewriter = Heard(), Scripted("SECRET", ValueError("SECRET"))
    script = Script(Append=with_orders(order("o-1", "SECRET"), order("o-2", "SECRET")), Fit=judges("NOT_OPEN"))
    async with serving(script, target), opened(target, rewriter=rewriter, on_event=heard, rewrites_at_once=1) as ledger:
        await completed(ledger)
        await heard.of(2)
    assert "SECRET" not in caplog.text
    assert "SECRET" not in repr(rewriter.orders[0])
    assert "SECRET" not in repr(heard.filled)


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
