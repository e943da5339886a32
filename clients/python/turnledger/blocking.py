"""The ledger for threads: the same as `aio`, without await, on a plain grpc channel."""

import threading
from collections.abc import Callable
from concurrent.futures import wait
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import grpc

from turnledger import wire
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
from turnledger.rewriter import PlainRewriter, is_async
from turnledger.rich_status import failure_of
from turnledger.saved import SavedTurn
from turnledger.stats import Stats
from turnledger.steps import Answer, Await, Came, Consult, Rpc, Sleep, Start, Step, Steps, TurnKeys
from turnledger.telemetry import Telemetry, installed
from turnledger.thread_crew import NOTICE_SECONDS, ThreadCrew
from turnledger.turn import TurnBase
from turnledger.turn_state import TurnState

_T = TypeVar("_T")


class BlockingLedger:
    """A node's sidecar, as an engine sees it. One serves all seats and threads of a process.

    Use it as `with BlockingLedger(target) as ledger`, or `close` it. Nothing is dialled before the first call, so
    neither making nor entering one waits for the sidecar or fails without it. A process that forks makes its ledger
    after.

    Args:
        target: "unix:///path", "unix:path" or "host:port".
        deadlines: The most that each call may take.
        on_event: Called, without await, with each event as it happens; what it raises is logged and counted.
        rewriter: Fills the sidecar's orders with the seat's auxiliary model: from an `Order` to a `Rewrite` or a str.
            It runs in threads of its own.
            `NoBudget` ends its batch; whatever else it raises is reported and never reaches a turn. None: no order
            is filled, and arguments, errors and older turns stand by size and digest, or by their facts alone.
        rewrites_at_once: The most calls of the rewriter at a time, 1 or more.
        telemetry: Where spans, metrics and events go. None: to OpenTelemetry's global providers, where its API is
            installed (`turnledger[otel]`); `turnledger.otel.OpenTelemetry` takes others, `NoTelemetry` none.

    Raises:
        ValueError: The target has another form, or `rewrites_at_once` is below 1.
        TypeError: `on_event` is a coroutine function, or `rewriter` is one, or is not callable.
    """

    def __init__(
        self,
        target: str,
        *,
        deadlines: Deadlines = DEFAULT_DEADLINES,
        on_event: Callable[[Event], object] | None = None,
        rewriter: PlainRewriter | None = None,
        rewrites_at_once: int = REWRITES_AT_ONCE,
        telemetry: Telemetry | None = None,
    ) -> None:
        telemetry = telemetry or installed()
        self._reporter = Reporter(on_event, telemetry)
        asker = real_asker(deadlines, self._reporter)
        self._filler = real_filler(rewriter, rewrites_at_once, asker, self._reporter)
        self._core = Core(asker, self._reporter, self._filler)
        if rewriter is not None and is_async(rewriter):
            raise TypeError("a BlockingLedger's rewriter is called without await: give a plain function")
        self._crew = None if rewriter is None else ThreadCrew(rewriter, rewrites_at_once)
        self._shell = _Shell(checked_target(target), self._crew, telemetry)
        self._closing_seconds = deadlines.close

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the orders end, then the connection go. Calls that are in flight then, and later ones, fail as CLOSED.

        Orders go on for `Deadlines.close` at most; what is left is given up and reported as ABANDONED, with half a
        second more to notice. A plain function that hangs stays in its daemon thread, which holds nothing up.
        """
        crew = self._crew
        if self._filler is not None and crew is not None:
            self._filler.close()
            crew.finish(self._closing_seconds)
            self._filler.abandon()
            crew.give_up()
        self._shell.close()
        if crew is not None:
            crew.finish(NOTICE_SECONDS)

    def drain(self, seconds: float) -> bool:
        """Wait until no order waits or runs, `seconds` at most; whether that came. Nobody needs to: see `close`."""
        return self._crew is None or self._crew.finish(seconds)

    @property
    def stats(self) -> Stats:
        """What this ledger did so far."""
        return self._reporter.counters.snapshot()

    def begin(
        self,
        *,
        agent_handle: str,
        conversation_key: str,
        turn_id: str,
        work_key: str,
        hard_limit_bytes: int = 0,
        wait_for_notes: bool = False,
    ) -> "BlockingTurn":
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
        return self._turn(self._shell.run(self._core.begin(keys, hard_limit_bytes, wait_for_notes=wait_for_notes)))

    def resume(self, saved: str) -> "BlockingTurn":
        """The turn that `Turn.save` wrote, on this ledger's sidecar: same keys, same frozen block, rounds counted on.

        Raises:
            InvalidSavedTurn: (a ValueError) The text is damaged, or of a newer version.
        """
        return self._turn(saved)

    def settle(self, *, agent_handle: str, conversation_key: str, work_key: str) -> Settlement:
        """Record that a turn's unsent text reached its party after all. One way and idempotent.

        Never raises for a failure of the service; it is in the settlement, after the retries that the contract allows.
        """
        return self._shell.run(self._core.settle(agent_handle, conversation_key, work_key))

    def forget(self, scope: Scope) -> Forgotten:
        """Erase one turn, a seat's conversation, or all of a seat.

        Raises:
            LedgerError: The sidecar did not say that it is done, after the retries that the contract allows.
        """
        return self._shell.run(self._core.forget(scope))

    def _turn(self, opening: SavedTurn | str) -> "BlockingTurn":
        return BlockingTurn(self._core, self._shell, self._core.state(opening))


class BlockingTurn(TurnBase):
    """One turn, from its frozen history to its receipt. It may be used from many threads at once."""

    def __init__(self, core: Core, shell: "_Shell", state: TurnState) -> None:
        super().__init__(state)
        self._core = core
        self._shell = shell

    def user_message(
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
        return self._shell.run(self._core.user_message(self._state, given))

    def complete(
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
        return self._shell.run(self._core.complete(self._state, ending, rewrite=rewrite))

    def suspended(self) -> Receipt:
        """Say that the run is suspended: nothing is recorded, the resumed run (see `save`) completes the turn."""
        return self._shell.run(self._core.interrupt(self._state, RunEnd.SUSPENDED))

    def crashed(self) -> Receipt:
        """Say that the run crashed: nothing is recorded, whoever takes the turn up again completes it."""
        return self._shell.run(self._core.interrupt(self._state, RunEnd.CRASHED))


class _Shell:
    """Carries steps out. The channel is made on first use, so that a fork before it does no harm."""

    def __init__(self, target: str, crew: ThreadCrew | None, telemetry: Telemetry) -> None:
        self._target = target
        self._telemetry = telemetry
        self._crew = crew
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None
        self._over = threading.Event()

    def run(self, steps: Steps[_T]) -> _T:
        """What the steps come to."""
        came: Came = None
        try:
            while True:
                came = self._carry_out(steps.send(came))
        except StopIteration as end:
            result: _T = end.value
            return result
        finally:
            steps.close()

    def _carry_out(self, step: Step) -> Came:
        match step:
            case Rpc():
                return self._call(step)
            case Sleep(seconds):
                self._over.wait(seconds)
            case Consult():
                return self._at_work().consult(step)
            case Start(piece):
                return self._at_work().start(partial(self.run, piece))
            case Await(futures, timeout):
                wait(futures, timeout)
        return None

    def _at_work(self) -> ThreadCrew:
        if self._crew is None:
            raise TypeError("steps for a rewriter, in a ledger that has none")
        return self._crew

    def close(self) -> None:
        with self._lock:
            self._over.set()
            if self._channel is not None:
                self._channel.close()

    def _call(self, rpc: Rpc) -> Answer | Failure:
        encoded = wire.encode(rpc.request)
        if isinstance(encoded, Failure):
            return encoded
        path, request = encoded
        call = rpc.within(partial(self._telemetry.call, path.strip("/"), self._target))
        came: Answer | Failure = CANCELLED
        try:
            answer = self._method(path)(request, timeout=rpc.timeout, metadata=call.metadata)
            came = wire.decode(rpc.request, answer)
        except grpc.RpcError as error:
            came = failure_of(error.code(), error.details(), error.trailing_metadata())
            if self._over.is_set():
                came = Failure("CANCELLED", CLOSED)
        except ValueError:  # grpc's word for a channel that is closed
            if not self._over.is_set():
                raise
            came = Failure("CANCELLED", CLOSED)
        finally:
            call.end(came if isinstance(came, Failure) else None)
        return came

    def _method(self, path: str) -> "grpc.UnaryUnaryMultiCallable[bytes, bytes]":
        with self._lock:
            if self._over.is_set():
                raise ValueError("the ledger is closed")
            if self._channel is None:
                self._channel = grpc.insecure_channel(self._target, options=OPTIONS)
            return self._channel.unary_unary(path)
