"""Record: whether a turn is for the ledger, and writing, rewriting, settling and forgetting it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from sidecar.config.settings import ConversationSession
from sidecar.domain.calls import SuppliedCall
from sidecar.domain.eligibility import Conversation, Disposition, RunEnd, SkipReason, TurnKey, skip_reason
from sidecar.domain.entry import Entry, EntryRef, Recorded
from sidecar.domain.fit import Judgement, Verdict, judge
from sidecar.domain.instructions import OrderKind
from sidecar.domain.limits import ORDER_BYTES
from sidecar.domain.orders import Order, OrderId, note_order, note_text, parse_order_id, payload_orders
from sidecar.domain.payload import fingerprint
from sidecar.domain.retention import TrimBound
from sidecar.services.apart import apart
from sidecar.services.observer import UNOBSERVED, ServiceObserver
from sidecar.store.append import Appended
from sidecar.store.settle import Settled
from sidecar.store.store import Store


@dataclass(frozen=True, slots=True)
class CompletedTurn:
    """What a completed run left: its entry as it may be kept, and the calls that it was made from."""

    entry: Entry
    supplied: tuple[SuppliedCall, ...]


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """What became of an Append, and the open rewrites. `entry_id` is empty and `ordinal` 0 if it was skipped."""

    disposition: Disposition
    entry_id: str = ""
    ordinal: int = 0
    skip_reason: SkipReason | None = None
    orders: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True)
class Fit:
    """The rewrite for one order, beside the text that the order carried."""

    order_id: str
    original: str
    rewrite: str


@dataclass(frozen=True, slots=True)
class FitResult:
    """What became of one fit."""

    order_id: str
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Seat:
    """All of one seat, as the scope of a Forget."""

    agent_handle: str


Scope = TurnKey | Conversation | Seat


class Erasure(StrEnum):
    """Whether forgotten text is gone from the files too."""

    COMPLETE = "complete"
    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many turns went, and whether their text is gone from the files too."""

    forgotten: int
    erasure: Erasure


class Record:
    """The service behind `turnledger.v1.Record`. Every method raises `LedgerError`."""

    def __init__(
        self,
        store: Store,
        settings: Callable[[], ConversationSession],
        mint_entry_id: Callable[[], str],
        bound: TrimBound,
        observer: ServiceObserver = UNOBSERVED,
    ) -> None:
        """`settings` is asked at each call, since the switch is live; `bound` is shared with the sweep."""
        self._store = store
        self._settings = settings
        self._mint_entry_id = mint_entry_id
        self._bound = bound
        self._observer = observer

    async def append(self, key: TurnKey, run_end: RunEnd, turn: CompletedTurn | None) -> RecordedTurn:
        """Record one turn, once. `turn` may be None only where the run left nothing."""
        recorded = await self._append(key, run_end, turn)
        kinds = [order.order_id.kind.value for order in recorded.orders]
        skipped = None if recorded.skip_reason is None else recorded.skip_reason.value
        self._observer.appended(recorded.disposition.value, skipped, kinds)
        return recorded

    async def _append(self, key: TurnKey, run_end: RunEnd, turn: CompletedTurn | None) -> RecordedTurn:
        settings = self._settings()
        reason = skip_reason(key, run_end, enabled=settings.enabled)
        if reason is not None or turn is None:
            return RecordedTurn(Disposition.SKIPPED, skip_reason=reason)
        max_entries = self._bound.for_a_write(settings.max_entries)
        appended = await self._store.append(key, turn.entry, self._mint_entry_id(), max_entries)
        if appended.ref is None:
            return RecordedTurn(appended.disposition, skip_reason=appended.skip_reason)
        size = sum(len(row.data or b"") for row in appended.slid_out)
        notes = await apart(size, lambda: _note_orders(appended))
        orders = (*await self._payload_orders(key, turn, appended, appended.ref), *notes)
        return RecordedTurn(appended.disposition, appended.entry_id, appended.ordinal, orders=orders)

    async def fit(self, conversation: Conversation, fits: Sequence[Fit]) -> list[FitResult]:
        """Judge each rewrite by itself, and put the good ones in their places. The switch does not stop this."""
        judgements = await asyncio.gather(*(self._fit(conversation, fit) for fit in fits))
        for fit, judgement in zip(fits, judgements, strict=True):
            order_id = parse_order_id(fit.order_id)
            self._observer.judged("unknown" if order_id is None else order_id.kind.value, judgement.verdict.value)
        return [FitResult(fit.order_id, judgement) for fit, judgement in zip(fits, judgements, strict=True)]

    async def settle(self, key: TurnKey) -> Settled:
        """The turn's unsent text reached its party after all. The switch does not stop this."""
        settled = await self._store.settle(key)
        self._observer.settled(settled.outcome.value)
        return settled

    async def forget(self, scope: Scope) -> Forgotten:
        """Erase what the scope names. The switch does not stop this."""
        forgotten = await self._delete(scope)
        self._observer.forgot(forgotten)
        complete = await self._store.finish_erasure()
        return Forgotten(forgotten, Erasure.COMPLETE if complete else Erasure.PENDING)

    async def _payload_orders(
        self, key: TurnKey, turn: CompletedTurn, appended: Appended, ref: EntryRef
    ) -> list[Order]:
        """For a duplicate the orders are made again, for what still stands by name in the entry that was first."""
        if not any(True for call in turn.entry.calls for _ in call.named()):
            return []
        first: Recorded | None = Recorded(ref, turn.entry)
        if appended.disposition is not Disposition.RECORDED:
            first = await self._store.entry(key.conversation, ref)
        if first is None:
            return []
        size = sum(len(call.arguments) + len(call.error) for call in turn.supplied)
        return await apart(size, partial(payload_orders, first, turn.supplied))

    async def _fit(self, conversation: Conversation, fit: Fit) -> Judgement:
        order_id = parse_order_id(fit.order_id)
        recorded = None if order_id is None else await self._store.open_entry(conversation, order_id)
        if order_id is None or recorded is None:
            return Judgement(Verdict.NOT_OPEN)
        original = _original(order_id, recorded, fit)
        if original is None:
            return Judgement(Verdict.ORIGINAL_MISMATCH)
        rewrite = fit.rewrite.strip()
        judgement = judge(order_id.kind, original, rewrite)
        if judgement.verdict is Verdict.ACCEPTED and not await self._store.accept(conversation, order_id, rewrite):
            return Judgement(Verdict.NOT_OPEN)
        return judgement

    async def _delete(self, scope: Scope) -> int:
        match scope:
            case TurnKey():
                return await self._store.forget_turn(scope)
            case Conversation():
                return await self._store.forget_conversation(scope)
            case Seat(agent_handle):
                return await self._store.forget_seat(agent_handle)


def _original(order_id: OrderId, recorded: Recorded, fit: Fit) -> str | None:
    """The text that the rewrite is judged by, or None where what came back is not what the order was issued for."""
    if order_id.kind is OrderKind.NOTE:
        return note_text(recorded)
    is_order_text = len(fit.original) <= ORDER_BYTES and fingerprint(fit.original)[1] == order_id.digest
    return fit.original if is_order_text else None


def _note_orders(appended: Appended) -> list[Order]:
    """For the entries that no longer fit a block whole, and have no note yet."""
    slid_out = (row.recorded() for row in appended.slid_out)
    return [note_order(recorded) for recorded in slid_out if recorded is not None and not recorded.note]
