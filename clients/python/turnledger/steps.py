"""The steps that the core asks its shell to take: one call, or one wait.

The core is generators that yield steps and are sent what came of them; the asyncio and the blocking shell only carry
them out. A call comes back as its answer or as a `Failure`, a wait as None.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from turnledger.answers import Disposition, Forgotten, History, Phase, Scope, Settlement, SkipReason
from turnledger.entry import Entry, RunEnd
from turnledger.failure import Failure


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
    """What Render.History said."""

    history: History
    already_recorded: bool


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
    """What Record.Append said."""

    disposition: Disposition
    skip_reason: SkipReason | None
    entry_id: str
    ordinal: int


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


Request = AskHistory | AskMessage | AskAppend | AskSettle | AskForget
Answer = HistoryAnswer | MessageAnswer | AppendAnswer | Settlement | Forgotten


@dataclass(frozen=True, slots=True)
class Rpc:
    """Make this call, and wait for it no longer than `timeout` seconds."""

    request: Request
    timeout: float


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait."""

    seconds: float


Step = Rpc | Sleep
_T = TypeVar("_T")
AnswerT = TypeVar("AnswerT", HistoryAnswer, MessageAnswer, AppendAnswer, Settlement, Forgotten)

#: A piece of the core that ends in a `_T`.
Steps = Generator[Step, Answer | Failure | None, _T]


def call(request: Request, timeout: float, answer: type[AnswerT]) -> Steps[AnswerT | Failure]:
    """Make one call, whose answer is of the named type."""
    came = yield Rpc(request, timeout)
    if isinstance(came, (answer, Failure)):
        return came
    raise TypeError(f"a shell answered {type(request).__name__} with {type(came).__name__}")
