"""The steps that the core asks its shell to take: one call, one wait, one rewrite, or a piece in the background.

The core is generators that yield steps and are sent what came of them; the asyncio and the blocking shell only carry
them out. A call comes back as its answer or as a `Failure`, a rewrite as itself or as `Unfilled`, a wait as None, and a
piece that is started as None, or as a `Failure` where nobody will run it.
"""

from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, TypeVar

from turnledger.answers import Disposition, Forgotten, History, Phase, Scope, Settlement, SkipReason
from turnledger.entry import Entry, RunEnd
from turnledger.failure import Failure
from turnledger.order import Order, Verdict
from turnledger.rewriter import Rewrite, Rewritten, Unfilled


@dataclass(frozen=True, slots=True)
class TurnKeys:
    """The keys of one turn, valid Unicode."""

    agent_handle: str
    conversation_key: str
    turn_id: str
    work_key: str


@dataclass(frozen=True, slots=True)
class AskHistory:
    """Render.History. `hard_limit_bytes` is 0 for none."""

    keys: TurnKeys
    hard_limit_bytes: int


@dataclass(frozen=True, slots=True)
class HistoryAnswer:
    """What Render.History said. `orders` are for the notes that its account lacks."""

    history: History
    already_recorded: bool
    orders: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True)
class AskMessage:
    """Render.UserMessage. Texts are parts, verbatim; `history` is None where the phase or a failed read leaves none."""

    keys: TurnKeys
    phase: Phase
    iteration: int
    context: str
    history: History | None
    task: str
    prior_work: str
    system_bytes: int | None
    tool_bytes: int | None


@dataclass(frozen=True, slots=True)
class MessageAnswer:
    """What Render.UserMessage said."""

    text: str


@dataclass(frozen=True, slots=True)
class AskAppend:
    """Record.Append. `entry` is None unless the run completed."""

    keys: TurnKeys
    run_end: RunEnd
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class AppendAnswer:
    """What Record.Append said. `orders` are the rewrites that are open."""

    disposition: Disposition
    skip_reason: SkipReason | None
    entry_id: str
    ordinal: int
    orders: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True)
class AskFit:
    """Record.Fit, for one order of a turn, made in a copy of that turn's `context`. `original` is empty for a note."""

    keys: TurnKeys
    order_id: str
    original: str
    rewrite: str
    context: Context = field(compare=False)


@dataclass(frozen=True, slots=True)
class FitAnswer:
    """What Record.Fit said. `over_by_bytes` is 0 unless the verdict is TOO_LONG."""

    verdict: Verdict
    over_by_bytes: int


@dataclass(frozen=True, slots=True)
class AskSettle:
    """Record.Settle."""

    agent_handle: str
    conversation_key: str
    work_key: str


@dataclass(frozen=True, slots=True)
class AskForget:
    """Record.Forget."""

    scope: Scope


_T = TypeVar("_T")

Request = AskHistory | AskMessage | AskAppend | AskFit | AskSettle | AskForget
Answer = HistoryAnswer | MessageAnswer | AppendAnswer | FitAnswer | Settlement | Forgotten


@dataclass(frozen=True, slots=True)
class Rpc:
    """Make this call, and wait for it no longer than `timeout` seconds."""

    request: Request
    timeout: float

    def within(self, begin: Callable[[], _T]) -> _T:
        """Call `begin` in the context of the turn that the call is for: a worker carries out those of many turns."""
        return self.request.context.copy().run(begin) if isinstance(self.request, AskFit) else begin()


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Consult:
    """Call the rewriter in a copy of `context`, and wait for it no longer than `timeout` seconds."""

    order: Order
    timeout: float
    context: Context


@dataclass(frozen=True, slots=True)
class Start:
    """Carry these steps out in the background."""

    steps: "Steps[None]"


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until all of these are done, no longer than `timeout` seconds."""

    futures: tuple[Future[Any], ...]
    timeout: float


Step = Rpc | Sleep | Consult | Start | Await
Came = Answer | Failure | Rewritten | None
AnswerT = TypeVar("AnswerT", HistoryAnswer, MessageAnswer, AppendAnswer, FitAnswer, Settlement, Forgotten)

#: A piece of the core that ends in a `_T`.
Steps = Generator[Step, Came, _T]


def call(request: Request, timeout: float, answer: type[AnswerT]) -> Steps[AnswerT | Failure]:
    """Make one call, whose answer is of the named type."""
    came = yield Rpc(request, timeout)
    if isinstance(came, (answer, Failure)):
        return came
    raise TypeError(f"a shell answered {type(request).__name__} with {type(came).__name__}")


def consult(this: Consult) -> Steps[Rewritten]:
    """Call the rewriter once."""
    came = yield this
    if isinstance(came, Rewrite | Unfilled):
        return came
    raise TypeError(f"a shell answered a Consult with {type(came).__name__}")
