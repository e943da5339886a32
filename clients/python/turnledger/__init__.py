"""The client of turnledger, the conversation session ledger: what did I already say and do here?

`Ledger` is for asyncio, `BlockingLedger` the same for threads. All else are the plain values that they take and give.
"""

from typing import TYPE_CHECKING, Any

from turnledger.answers import (
    ConversationScope,
    Disposition,
    Erasure,
    Forgotten,
    History,
    HistoryState,
    Phase,
    Receipt,
    Scope,
    SeatScope,
    Settlement,
    SettleOutcome,
    SkipReason,
    TurnScope,
)
from turnledger.deadlines import Deadlines
from turnledger.entry import CallKind, Reply, RunEnd, Unsent
from turnledger.events import (
    Composer,
    Event,
    HistoryRead,
    MessageComposed,
    OrderFilled,
    TextRepaired,
    TurnEnded,
    TurnSettled,
    TurnsForgotten,
)
from turnledger.failure import Failure, LedgerError, Violation
from turnledger.order import FillOutcome, Order, OrderKind, Verdict
from turnledger.prompt_size import PromptSize
from turnledger.rewriter import NoBudget, Rewrite
from turnledger.saved import InvalidSavedTurn
from turnledger.stats import Stats
from turnledger.steps import TurnKeys

if TYPE_CHECKING:
    from turnledger.aio import Ledger, Turn
    from turnledger.blocking import BlockingLedger, BlockingTurn

__all__ = [
    "BlockingLedger",
    "BlockingTurn",
    "CallKind",
    "Composer",
    "ConversationScope",
    "Deadlines",
    "Disposition",
    "Erasure",
    "Event",
    "Failure",
    "FillOutcome",
    "Forgotten",
    "History",
    "HistoryRead",
    "HistoryState",
    "InvalidSavedTurn",
    "Ledger",
    "LedgerError",
    "MessageComposed",
    "NoBudget",
    "Order",
    "OrderFilled",
    "OrderKind",
    "Phase",
    "PromptSize",
    "Receipt",
    "Reply",
    "Rewrite",
    "RunEnd",
    "Scope",
    "SeatScope",
    "SettleOutcome",
    "Settlement",
    "SkipReason",
    "Stats",
    "TextRepaired",
    "Turn",
    "TurnEnded",
    "TurnKeys",
    "TurnScope",
    "TurnSettled",
    "TurnsForgotten",
    "Unsent",
    "Verdict",
    "Violation",
]


def __getattr__(name: str) -> Any:
    """The shells, imported on first use: the pure modules, and the stubs alone, then load no client and no grpc."""
    if name in ("Ledger", "Turn"):
        from turnledger import aio

        return getattr(aio, name)
    if name in ("BlockingLedger", "BlockingTurn"):
        from turnledger import blocking

        return getattr(blocking, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
