"""Record: whether a turn is for the ledger, and writing, settling and forgetting it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sidecar.config.settings import ConversationSession
from sidecar.domain.eligibility import Conversation, Disposition, RunEnd, TurnKey, skip_reason
from sidecar.domain.entry import Entry
from sidecar.store.append import Appended
from sidecar.store.settle import Settled
from sidecar.store.store import Store


@dataclass(frozen=True, slots=True)
class Seat:
    """All of one seat, as the scope of a Forget."""

    agent_handle: str


Scope = TurnKey | Conversation | Seat


class Erasure(StrEnum):
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
        self, store: Store, settings: Callable[[], ConversationSession], mint_entry_id: Callable[[], str]
    ) -> None:
        """`settings` is asked at each call, since the switch is live."""
        self._store = store
        self._settings = settings
        self._mint_entry_id = mint_entry_id

    async def append(self, key: TurnKey, run_end: RunEnd, entry: Entry | None) -> Appended:
        """Record one turn, once. `entry` may be None only where the run left none."""
        settings = self._settings()
        reason = skip_reason(key, run_end, enabled=settings.enabled)
        if reason is not None or entry is None:
            return Appended(Disposition.SKIPPED, skip_reason=reason)
        return await self._store.append(key, entry, self._mint_entry_id(), settings.max_entries)

    async def settle(self, key: TurnKey) -> Settled:
        """The turn's unsent text reached its party after all. The switch does not stop this."""
        return await self._store.settle(key)

    async def forget(self, scope: Scope) -> Forgotten:
        """Erase what the scope names. The switch does not stop this."""
        forgotten = await self._delete(scope)
        complete = await self._store.finish_erasure()
        return Forgotten(forgotten, Erasure.COMPLETE if complete else Erasure.PENDING)

    async def _delete(self, scope: Scope) -> int:
        match scope:
            case TurnKey():
                return await self._store.forget_turn(scope)
            case Conversation():
                return await self._store.forget_conversation(scope)
            case Seat(agent_handle):
                return await self._store.forget_seat(agent_handle)
