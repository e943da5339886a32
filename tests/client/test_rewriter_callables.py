"""What an engine may give as a rewriter, and whatever that returns or raises."""

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
    Ledger,
    Order,
    Rewrite,
)

from tests.client.orders import completed, five
from tests.client.rewriters import Heard, Scripted, until
from tests.client.scripted_sidecar import (
    Open,
    Script,
    judges,
    order,
    serving,
    with_orders,
)


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


async def test_a_hook_that_fails_does_not_stop_the_orders(opened: Open, target: str) -> None:
    """What `on_event` raises is counted, and the next order is run."""

    def hook(event: object) -> None:
        raise ValueError(type(event).__name__)

    async with serving(Script(Append=five()), target), opened(target, rewriter=Scripted(), on_event=hook) as ledger:
        await completed(ledger)
        await until(lambda: ledger.stats.orders_accepted == 5)


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
