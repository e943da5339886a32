"""What the ledger answers an engine: plain values, named as in the contract."""

from dataclasses import dataclass
from enum import StrEnum

from turnledger.failure import Failure


class HistoryState(StrEnum):
    """Whether there is a block."""

    PRESENT = "present"
    #: Read, and nothing was there.
    EMPTY = "empty"
    #: The ledger is switched off; nothing was read.
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class History:
    """The frozen block: the same bytes for every round of its turn, on any sidecar.

    `text` is empty unless `state` is PRESENT. `digest` is the SHA-256 of its UTF-8 in lower-case hex, `bytes` its size.
    The counts are entries: shown whole, standing in the account, without room in it, no longer kept, unreadable.
    """

    state: HistoryState
    text: str
    digest: str
    bytes: int
    shown: int = 0
    condensed: int = 0
    left_out: int = 0
    no_longer_kept: int = 0
    unreadable: int = 0


class Phase(StrEnum):
    """The kind of round that a message is for. Only EXECUTE gets the block."""

    EXECUTE = "execute"
    REVIEW = "review"
    OTHER = "other"


class Disposition(StrEnum):
    """What became of a turn's entry."""

    #: Written, committed and synced.
    RECORDED = "recorded"
    #: This seat, conversation and work key is on disk already: a redelivery, or an earlier try whose answer was lost.
    DUPLICATE = "duplicate"
    #: Not for the ledger; see the skip reason.
    SKIPPED = "skipped"


class SkipReason(StrEnum):
    """Why nothing was written."""

    DISABLED = "disabled"
    RUN_CRASHED = "run_crashed"
    RUN_SUSPENDED = "run_suspended"
    NOT_REPRODUCIBLE = "not_reproducible"
    NO_WORK_KEY = "no_work_key"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a turn.

    Exactly one of `disposition` and `failure` is set. `skip_reason` goes with SKIPPED, and is None then only where the
    sidecar is newer than this library and gives a reason that it does not know. `entry_id` is empty and `ordinal` (the
    entry's place in its conversation, from 1) is 0 unless the entry is in the ledger. `attempts` counts the calls made.
    """

    disposition: Disposition | None = None
    skip_reason: SkipReason | None = None
    entry_id: str = ""
    ordinal: int = 0
    failure: Failure | None = None
    attempts: int = 0

    @property
    def in_ledger(self) -> bool:
        """Whether the turn's entry is known to be on disk: RECORDED or DUPLICATE."""
        return self.disposition in (Disposition.RECORDED, Disposition.DUPLICATE)


class SettleOutcome(StrEnum):
    """What became of a settle."""

    #: What was unsent is now a reply.
    SETTLED = "settled"
    #: It was a reply already.
    ALREADY_REPLY = "already_reply"
    #: No such turn is in the ledger.
    NOT_FOUND = "not_found"
    #: The turn was recorded, but its entry is no longer kept.
    NO_LONGER_KEPT = "no_longer_kept"


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of a settle. One of `outcome` and `failure` is set; `entry_id` is empty if nothing was found."""

    outcome: SettleOutcome | None = None
    entry_id: str = ""
    failure: Failure | None = None
    attempts: int = 0


class Erasure(StrEnum):
    """Whether forgotten text is gone from the store's files. Backups are not the sidecar's to erase."""

    COMPLETE = "complete"
    #: Gone from every answer; the files follow as soon as a reader lets go.
    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many turns a forget erased, and whether their text is gone from the files.

    After a try whose answer was lost, the count is that of the last try: turns that the lost one erased are not in it.
    """

    forgotten: int
    erasure: Erasure


@dataclass(frozen=True, slots=True)
class TurnScope:
    """One turn of one seat."""

    agent_handle: str
    conversation_key: str
    work_key: str


@dataclass(frozen=True, slots=True)
class ConversationScope:
    """All turns of one seat in one conversation."""

    agent_handle: str
    conversation_key: str


@dataclass(frozen=True, slots=True)
class SeatScope:
    """All turns of one seat."""

    agent_handle: str


Scope = TurnScope | ConversationScope | SeatScope
