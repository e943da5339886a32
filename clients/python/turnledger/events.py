"""What a ledger tells its engine as it happens, for metrics. No event ever carries text of an entry or of a prompt.

An event reaches the one `on_event` hook, in the task or thread that caused it. Times are seconds, sizes bytes of UTF-8.
"""

from dataclasses import dataclass
from enum import StrEnum

from turnledger.answers import Forgotten, HistoryState, Phase, Receipt, Settlement
from turnledger.entry import RunEnd
from turnledger.failure import Failure
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
    """A round has its message. `failure` says why the client composed it by itself."""

    keys: TurnKeys
    phase: Phase
    iteration: int
    composer: Composer
    size: PromptSize
    failure: Failure | None
    seconds: float


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


Event = HistoryRead | MessageComposed | TurnEnded | TurnSettled | TurnsForgotten | TextRepaired
