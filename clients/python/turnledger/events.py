"""What a ledger tells its engine as it happens, for metrics. No event ever carries text of an entry or of a prompt.

An event reaches the one `on_event` hook, in the task or thread that caused it. Times are seconds, sizes bytes of UTF-8.
"""

from dataclasses import dataclass
from enum import StrEnum

from turnledger.answers import Forgotten, HistoryState, Phase, Receipt, Settlement
from turnledger.entry import RunEnd
from turnledger.failure import Failure
from turnledger.order import FillOutcome, OrderKind, Verdict
from turnledger.prompt_size import PromptSize
from turnledger.steps import TurnKeys


class Composer(StrEnum):
    """Who composed a message and so accounts for it: the sidecar emits `prompt.size` only for its own."""

    SIDECAR = "sidecar"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class HistoryRead:
    """A turn began. Exactly one of `state` and `failure` is set; `bytes` is the block's size."""

    keys: TurnKeys
    state: HistoryState | None
    bytes: int
    already_recorded: bool
    failure: Failure | None
    seconds: float


@dataclass(frozen=True, slots=True)
class MessageComposed:
    """A round has its message. `failure` says why the client composed it by itself; the last two sizes are as given."""

    keys: TurnKeys
    phase: Phase
    iteration: int
    composer: Composer
    size: PromptSize
    failure: Failure | None
    seconds: float
    system_bytes: int | None = None
    tool_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn completed, or its run was suspended or crashed; the receipt says what became of it."""

    keys: TurnKeys
    run_end: RunEnd
    receipt: Receipt
    seconds: float


@dataclass(frozen=True, slots=True)
class TurnSettled:
    """A settle was asked for."""

    settlement: Settlement
    seconds: float


@dataclass(frozen=True, slots=True)
class TurnsForgotten:
    """A forget was asked for. Exactly one of `forgotten` and `failure` is set."""

    forgotten: Forgotten | None
    failure: Failure | None
    seconds: float


@dataclass(frozen=True, slots=True)
class TextRepaired:
    """Text was no valid Unicode: `replaced` lone surrogates became U+FFFD in the named fields."""

    fields: tuple[str, ...]
    replaced: int


@dataclass(frozen=True, slots=True)
class OrderFilled:
    """An order is over, for the turn of these keys, whose answer named it.

    `verdict` is the sidecar's last one, None if it gave none. `calls` of the rewriter were made (0 to 2), and took so
    many tokens. `error` is the type of what the rewriter raised, if the outcome is ERROR; `failure` says why a rewrite
    could not be handed in, if it is NOT_SENT.
    """

    keys: TurnKeys
    order_id: str
    kind: OrderKind
    outcome: FillOutcome
    verdict: Verdict | None
    calls: int
    prompt_tokens: int
    completion_tokens: int
    error: str
    failure: Failure | None
    seconds: float

    @property
    def changed_the_block(self) -> bool:
        """Whether a rewrite of it stands in the next block: this one, or one that came before."""
        return self.verdict in (Verdict.ACCEPTED, Verdict.NOT_OPEN)


Event = HistoryRead | MessageComposed | TurnEnded | TurnSettled | TurnsForgotten | TextRepaired | OrderFilled
