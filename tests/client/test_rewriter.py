"""The rewriter against a scripted sidecar on a real socket: which orders are run, how often, and who hears of it."""

import asyncio
import threading

import pytest
from turnledger import (
    Deadlines,
    FillOutcome,
    NoBudget,
    OrderKind,
    Rewrite,
    Verdict,
)
from turnledger.v1 import entry_pb2, render_pb2

from tests.client.orders import completed, five
from tests.client.rewriters import Heard, Scripted, until
from tests.client.scripted_sidecar import (
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


@pytest.mark.parametrize(("rest", "calls"), [(600.0, 1), (0.0, 2)])
async def test_an_order_whose_call_failed_rests(
    opened: Open, target: str, monkeypatch: pytest.MonkeyPatch, rest: float, calls: int
) -> None:
    """Later turns that name it again do not pay for the same failure, until its rest is over."""
    monkeypatch.setattr("turnledger.filling._REST_SECONDS", rest)
    heard, rewriter = Heard(), Scripted(ValueError())
    async with (
        serving(Script(Append=with_orders(order())), target),
        opened(target, rewriter=rewriter, on_event=heard) as ledger,
    ):
        for _ in range(2):
            await completed(ledger)
            assert await ledger.drain(20)
    assert len(rewriter.orders) == calls


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


async def test_a_turn_that_its_budget_ended_runs_nothing(opened: Open, target: str) -> None:
    """`rewrite=False` records the turn and leaves its orders open."""
    rewriter = Scripted()
    script = Script(Append=five())
    async with serving(script, target), opened(target, rewriter=rewriter) as ledger:
        receipt = await completed(ledger, rewrite=False)
    assert receipt.in_ledger
    assert (rewriter.orders, script.seen["Fit"]) == ([], [])


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
