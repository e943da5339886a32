"""The ledger for asyncio: a thin shell that carries the core's steps out on a grpc.aio channel."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import grpc
import grpc.aio

from turnledger import wire
from turnledger.aio_crew import AioCrew
from turnledger.answers import Forgotten, Phase, Receipt, Scope, Settlement
from turnledger.assembly import real_asker, real_filler
from turnledger.channel import OPTIONS, checked_target
from turnledger.core import Core, Ending, Round
from turnledger.deadlines import DEFAULT_DEADLINES, Deadlines
from turnledger.entry import Reply, RunEnd, Unsent
from turnledger.events import Event
from turnledger.failure import CANCELLED, CLOSED, Failure
from turnledger.filling import REWRITES_AT_ONCE
from turnledger.reporter import Reporter
from turnledger.rewriter import Rewriter
from turnledger.rich_status import failure_of
from turnledger.saved import SavedTurn
from turnledger.stats import Stats
from turnledger.steps import Answer, Await, Came, Consult, Rpc, Sleep, Start, Step, Steps, TurnKeys
from turnledger.telemetry import Telemetry, installed
from turnledger.turn import TurnBase
from turnledger.turn_state import TurnState

_T = TypeVar("_T")


class Ledger:
    """A node's sidecar, as an engine sees it. One serves all seats and tasks of one event loop.

    Use it as `async with Ledger(target) as ledger`, or `close` it. Nothing is dialled before the first call, so neither
    making nor entering one waits for the sidecar or fails without it. A process that forks makes its ledger after.

    Args:
        target: "unix:///path", "unix:path" or "host:port".
        deadlines: The most that each call may take.
        on_event: Called, without await, with each event as it happens; what it raises is logged and counted.
        rewriter: Fills the sidecar's orders with the seat's auxiliary model: from an `Order` to a `Rewrite` or a str.
            An async function runs in the ledger's event loop, a plain one in a thread.
            `NoBudget` ends its batch; whatever else it raises is reported and never reaches a turn. None: no order
            is filled, and arguments, errors and older turns stand by size and digest, or by their facts alone.
        rewrites_at_once: The most calls of the rewriter at a time, 1 or more.
        telemetry: Where spans, metrics and events go. None: to OpenTelemetry's global providers, where its API is
            installed (`turnledger[otel]`); `turnledger.otel.OpenTelemetry` takes others, `NoTelemetry` none.

    Raises:
        ValueError: The target has another form, or `rewrites_at_once` is below 1.
        TypeError: `on_event` is a coroutine function, or `rewriter` is not callable.
    """

    def __init__(
        self,
        target: str,
        *,
        deadlines: Deadlines = DEFAULT_DEADLINES,
        on_event: Callable[[Event], object] | None = None,
        rewriter: Rewriter | None = None,
        rewrites_at_once: int = REWRITES_AT_ONCE,
        telemetry: Telemetry | None = None,
    ) -> None:
        telemetry = telemetry or installed()
        self._reporter = Reporter(on_event, telemetry)
        asker = real_asker(deadlines, self._reporter)
        self._filler = real_filler(rewriter, rewrites_at_once, asker, self._reporter)
        self._core = Core(asker, self._reporter, self._filler)
        self._crew = None if rewriter is None else AioCrew(rewriter, rewrites_at_once)
        self._shell = _Shell(checked_target(target), self._crew, telemetry)
        self._closing_seconds = deadlines.close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let the orders end, then the connection go. Calls that are in flight then, and later ones, fail as CLOSED.

        Orders go on for `Deadlines.close` at most; what is left is given up and reported as ABANDONED, with half a
        second more to notice. A plain function that hangs stays in its daemon thread, which holds nothing up.
        """
        if self._filler is not None and self._crew is not None:
            self._filler.close()
            try:
                await self._crew.finish(self._closing_seconds)
            finally:
                self._filler.abandon()
                await self._crew.give_up()
        await self._shell.close()

    async def drain(self, seconds: float) -> bool:
        """Wait until no order waits or runs, `seconds` at most; whether that came. Nobody needs to: see `close`."""
        return self._crew is None or await self._crew.finish(seconds)

    @property
    def stats(self) -> Stats:
        """What this ledger did so far."""
        return self._reporter.counters.snapshot()

    async def begin(
        self,
        *,
        agent_handle: str,
        conversation_key: str,
        turn_id: str,
        work_key: str,
        hard_limit_bytes: int = 0,
        wait_for_notes: bool = False,
    ) -> "Turn":
        """Begin a turn: read its conversation's history, once, and freeze it. Call it when the turn starts, not before.

        It fails open: a history that cannot be read leaves `turn.history` None and the reason in `turn.read_failure`.

        Args:
            agent_handle: The seat, 1 to 512 bytes.
            conversation_key: The conversation's identity, such as "jira:POC-7", 1 to 512 bytes.
            turn_id: Names the run, 1 to 256 bytes.
            work_key: Digest of the turn's constituent trigger ids, at most 256 bytes; empty: the turn is not recorded.
            hard_limit_bytes: The most bytes that the model can take as a block, at least 4096; 0 for no limit.
            wait_for_notes: Whether to wait, within `Deadlines.begin`, for the notes of older turns that the block
                lacks, and to read it once more then. Else they are made behind the turn, for the next one.

        Raises:
            TypeError: A key is no str.
            ValueError: `hard_limit_bytes` is negative.
        """
        keys = TurnKeys(agent_handle, conversation_key, turn_id, work_key)
        return self._turn(
            await self._shell.run(self._core.begin(keys, hard_limit_bytes, wait_for_notes=wait_for_notes))
        )

    def resume(self, saved: str) -> "Turn":
        """The turn that `Turn.save` wrote, on this ledger's sidecar: same keys, same frozen block, rounds counted on.

        Raises:
            InvalidSavedTurn: (a ValueError) The text is damaged, or of a newer version.
        """
        return self._turn(saved)

    async def settle(self, *, agent_handle: str, conversation_key: str, work_key: str) -> Settlement:
        """Record that a turn's unsent text reached its party after all. One way and idempotent.

        Never raises for a failure of the service; it is in the settlement, after the retries that the contract allows.
        """
        return await self._shell.run(self._core.settle(agent_handle, conversation_key, work_key))

    async def forget(self, scope: Scope) -> Forgotten:
        """Erase one turn, a seat's conversation, or all of a seat.

        Raises:
            LedgerError: The sidecar did not say that it is done, after the retries that the contract allows.
        """
        return await self._shell.run(self._core.forget(scope))

    def _turn(self, opening: SavedTurn | str) -> "Turn":
        return Turn(self._core, self._shell, self._core.state(opening))


class Turn(TurnBase):
    """One turn, from its frozen history to its receipt. It may be used from many tasks at once."""

    def __init__(self, core: Core, shell: "_Shell", state: TurnState) -> None:
        super().__init__(state)
        self._core = core
        self._shell = shell

    async def user_message(
        self,
        *,
        phase: Phase,
        task: str,
        context: str = "",
        prior_work: str = "",
        iteration: int | None = None,
        system_bytes: int | None = None,
        tool_bytes: int | None = None,
    ) -> str:
        """One round's user message, the same bytes whether the sidecar answers or not.

        Parts are taken verbatim and left out if empty; only phase EXECUTE gets the block.

        Args:
            phase: The kind of round.
            task: The ask.
            context: The engine's other blocks.
            prior_work: What was already done earlier in this turn, as the engine renders it.
            iteration: The round's number within its phase, from 1; None: one more than the last.
            system_bytes: Size of the system prompt for the event `prompt.size`, if wanted there.
            tool_bytes: Size of the tool definitions, likewise.

        Raises:
            TypeError: A part is no str.
            ValueError: The phase is none, or a number is out of range.
        """
        given = Round(phase, task, context, prior_work, iteration, system_bytes, tool_bytes)
        return await self._shell.run(self._core.user_message(self._state, given))

    async def complete(
        self,
        outcome: Reply | Unsent,
        *,
        trigger: str,
        intent: str = "",
        decision: str = "done",
        completed_work: str = "",
        blocked_on: str = "",
        completed_at: datetime | None = None,
        rewrite: bool = True,
    ) -> Receipt:
        """Record the turn, with the calls collected. Call it before the trigger is acknowledged.

        Never raises for a failure of the service: it is in `receipt.failure`, logged and counted. It may be called
        again then; an entry that was written after all answers DUPLICATE.

        Args:
            outcome: The final text: a Reply reached its party, an Unsent nobody.
            trigger: What started the turn, verbatim; for a merged batch the whole digest.
            intent: The executor's own summary of what it set out to do.
            decision: How the turn ended, [a-z_]{1,32}; the next turn is told unless it is "done".
            completed_work: The reviewer's prose on what landed.
            blocked_on: The executor's evidence on a blocked turn.
            completed_at: When the turn ended, with a time zone; None for now.
            rewrite: Whether the seat's rewriter may be run for this turn, behind it. False for a turn that its budget
                ended: only the engine knows which of its decisions say so.

        Raises:
            TypeError: A text is no str, or the outcome is neither.
            ValueError: `completed_at` has no time zone.
        """
        ending = Ending(outcome, trigger, intent, decision, completed_work, blocked_on, completed_at)
        return await self._shell.run(self._core.complete(self._state, ending, rewrite=rewrite))

    async def suspended(self) -> Receipt:
        """Say that the run is suspended: nothing is recorded, the resumed run (see `save`) completes the turn."""
        return await self._shell.run(self._core.interrupt(self._state, RunEnd.SUSPENDED))

    async def crashed(self) -> Receipt:
        """Say that the run crashed: nothing is recorded, whoever takes the turn up again completes it."""
        return await self._shell.run(self._core.interrupt(self._state, RunEnd.CRASHED))


class _Shell:
    """Carries steps out. The channel is made on first use, in the event loop that then runs."""

    def __init__(self, target: str, crew: AioCrew | None, telemetry: Telemetry) -> None:
        self._target = target
        self._telemetry = telemetry
        self._crew = crew
        self._channel: grpc.aio.Channel | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed = False

    async def run(self, steps: Steps[_T]) -> _T:
        """What the steps come to. A cancelled task leaves at once, and its call is cancelled too."""
        came: Came = None
        try:
            while True:
                came = await self._carry_out(steps.send(came))
        except StopIteration as end:
            result: _T = end.value
            return result
        finally:
            steps.close()

    async def _carry_out(self, step: Step) -> Came:
        match step:
            case Rpc():
                return await self._call(step)
            case Sleep(seconds):
                await asyncio.sleep(seconds)
            case Consult():
                return await self._at_work().consult(step)
            case Start(piece):
                return self._at_work().start(self.run(piece))
            case Await(futures, timeout):
                if waiting := [asyncio.wrap_future(one) for one in futures if not one.done()]:
                    await asyncio.wait(waiting, timeout=timeout)
        return None

    def _at_work(self) -> AioCrew:
        if self._crew is None:
            raise TypeError("steps for a rewriter, in a ledger that has none")
        return self._crew

    async def close(self) -> None:
        self.closed = True
        if self._channel is not None:
            await self._channel.close()

    async def _call(self, rpc: Rpc) -> Answer | Failure:
        encoded = wire.encode(rpc.request)
        if isinstance(encoded, Failure):
            return encoded
        path, request = encoded
        if self.closed:
            return Failure("CANCELLED", CLOSED)
        method = self._method(path)
        call = rpc.within(partial(self._telemetry.call, path.strip("/"), self._target))
        came: Answer | Failure = CANCELLED
        try:
            answer = await method(request, timeout=rpc.timeout, metadata=call.metadata)
            came = wire.decode(rpc.request, answer)
        except grpc.aio.AioRpcError as error:
            came = failure_of(error.code(), error.details(), error.trailing_metadata())
        except asyncio.CancelledError:
            if not self.closed or _is_being_cancelled():
                raise
            came = Failure("CANCELLED", CLOSED)
        finally:
            call.end(came if isinstance(came, Failure) else None)
        return came

    def _method(self, path: str) -> "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]":
        loop = asyncio.get_running_loop()
        if self._channel is None:
            self._channel, self._loop = grpc.aio.insecure_channel(self._target, options=OPTIONS), loop
        if self._loop is not loop:
            raise RuntimeError("a Ledger serves one event loop: make one for each")
        return self._channel.unary_unary(path)


def _is_being_cancelled() -> bool:
    """Whether somebody cancelled the running task; else a CancelledError comes from grpc, for a channel that closed."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
