"""Render: the block of a conversation, and one round's user message."""

from collections.abc import Callable
from dataclasses import dataclass

from turnledger.compose import Parts, approximate_tokens, compose
from turnledger.limits import MESSAGE_BYTES

from sidecar.config.settings import ConversationSession
from sidecar.domain.block import History, HistoryState, build, without_note
from sidecar.domain.eligibility import TurnKey
from sidecar.domain.orders import Order, note_order
from sidecar.domain.prompt import Phase, PromptSize, Round
from sidecar.domain.text import size_of
from sidecar.services.observer import UNOBSERVED, ServiceObserver
from sidecar.store.history import Reading
from sidecar.store.store import Store

#: What a block may have at most, so that the answer that carries it stays a message that a client takes.
_SENDABLE_BYTES = MESSAGE_BYTES - 64 * 1024


@dataclass(frozen=True, slots=True)
class TurnStart:
    """What a turn begins with. `orders` are for the notes that the history's account lacks."""

    history: History
    already_recorded: bool = False
    orders: tuple[Order, ...] = ()


class Render:
    """The service behind `turnledger.v1.Render`."""

    def __init__(
        self,
        store: Store,
        settings: Callable[[], ConversationSession],
        report: Callable[[Round, PromptSize], None],
        observer: ServiceObserver = UNOBSERVED,
    ) -> None:
        """`settings` is asked at each call, since the switch is live; `report` gets the sizes of each round."""
        self._store = store
        self._settings = settings
        self._report = report
        self._observer = observer

    async def history(self, key: TurnKey, hard_limit: int | None) -> TurnStart:
        """The conversation's block, within `hard_limit` bytes if one is given. Raises `LedgerError`."""
        start = await self._start(key, hard_limit)
        history = start.history
        fates = {
            "whole": history.shown,
            "condensed": history.condensed,
            "left_out": history.left_out,
            "no_longer_kept": history.no_longer_kept,
            "unreadable": history.unreadable,
        }
        kinds = [order.order_id.kind.value for order in start.orders]
        self._observer.read_history(history.state.value, history.size, fates, kinds)
        return start

    async def _start(self, key: TurnKey, hard_limit: int | None) -> TurnStart:
        settings = self._settings()
        if not settings.enabled:
            return TurnStart(History(HistoryState.DISABLED))
        limit = min(hard_limit or _SENDABLE_BYTES, _SENDABLE_BYTES)

        def finish(reading: Reading) -> TurnStart:
            history = build(reading.kept, limit)
            orders = (note_order(recorded) for recorded in without_note(reading.kept, history))
            return TurnStart(history, reading.already_recorded, tuple(orders))

        return await self._store.history(key, settings.max_entries, finish)

    def user_message(self, this: Round, parts: Parts) -> tuple[str, PromptSize]:
        """The round's message and its sizes. Only the executor's rounds get the block, whatever `parts` holds."""
        if this.phase is not Phase.EXECUTE:
            parts = Parts(parts.context, "", parts.task, parts.prior_work)
        text = compose(parts)
        user_bytes = size_of(text)
        size = PromptSize(
            user_bytes=user_bytes,
            history_bytes=size_of(parts.history),
            task_bytes=size_of(parts.task),
            context_bytes=size_of(parts.context),
            prior_work_bytes=size_of(parts.prior_work),
            approximate_tokens=approximate_tokens(user_bytes),
        )
        self._report(this, size)
        parts_sizes = {
            "history": size.history_bytes,
            "task": size.task_bytes,
            "context": size.context_bytes,
            "prior_work": size.prior_work_bytes,
        }
        self._observer.composed(this.phase.value, user_bytes, parts_sizes)
        return text, size
