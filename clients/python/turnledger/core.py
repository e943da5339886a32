"""The rules of a turn, once, for every shell: generators of steps, without grpc, stubs, clock or chance of their own.

What is read is read once and frozen; what cannot be read leaves the prompt of before the ledger; what cannot be written
is swallowed, logged and counted. See `steps` for how a shell carries a generator out.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from turnledger import retry
from turnledger.answers import ConversationScope, Forgotten, Phase, Receipt, Scope, SeatScope, Settlement, TurnScope
from turnledger.asking import Asker
from turnledger.compose import Parts, compose
from turnledger.entry import Entry, Reply, RunEnd, Unsent
from turnledger.events import Composer, HistoryRead, MessageComposed, TurnEnded, TurnSettled, TurnsForgotten
from turnledger.failure import BAD_ANSWER, Failure, LedgerError
from turnledger.filling import Filler
from turnledger.order_queue import Job
from turnledger.prompt_size import prompt_size
from turnledger.reporter import Reporter
from turnledger.saved import SavedTurn, load
from turnledger.steps import (
    AppendAnswer,
    AskAppend,
    AskForget,
    AskHistory,
    AskMessage,
    AskSettle,
    Await,
    HistoryAnswer,
    MessageAnswer,
    Steps,
    TurnKeys,
)
from turnledger.text import Mender
from turnledger.turn_state import TurnState

#: The share of the begin deadline that is kept for reading the history again: a read takes milliseconds.
_SECOND_READ_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Round:
    """What an engine gives for one round's message. `iteration` is None to be counted."""

    phase: Phase
    task: str
    context: str
    prior_work: str
    iteration: int | None
    system_bytes: int | None
    tool_bytes: int | None


@dataclass(frozen=True, slots=True)
class Ending:
    """What an engine gives for a completed turn, its calls apart. `completed_at` is None for now."""

    outcome: Reply | Unsent
    trigger: str
    intent: str
    decision: str
    completed_work: str
    blocked_on: str
    completed_at: datetime | None


class Core:
    """What one ledger knows: how to ask, and whom to tell. All its turns share it, in many tasks or threads at once."""

    def __init__(self, asker: Asker, reporter: Reporter, filler: Filler | None = None) -> None:
        """`filler` is None where the engine gave no rewriter."""
        self._asker = asker
        self._reporter = reporter
        self._filler = filler

    def begin(self, keys: TurnKeys, hard_limit_bytes: int, *, wait_for_notes: bool = False) -> Steps[SavedTurn]:
        """Read the history once; on failure the turn has none. Its missing notes are made, now or behind the turn."""
        _in_range("hard_limit_bytes", hard_limit_bytes)
        began = self._asker.clock()
        keys = self._mended(keys)
        request = AskHistory(keys, hard_limit_bytes)
        answer, _ = yield from self._asker.persist(
            request, HistoryAnswer, self._asker.deadlines.begin, retry.while_it_answers
        )
        if isinstance(answer, HistoryAnswer) and self._filler and answer.orders:
            jobs = yield from self._filler.start(keys, answer.orders, urgent=wait_for_notes)
            if wait_for_notes:
                answer = yield from self._with_notes(request, answer, jobs, began + self._asker.deadlines.begin)
        if isinstance(answer, Failure):
            opening = SavedTurn(keys, None, answer, False, {}, ())
            event = HistoryRead(keys, None, 0, False, answer, self._since(began))
        else:
            history = answer.history
            opening = SavedTurn(keys, history, None, answer.already_recorded, {}, ())
            event = HistoryRead(keys, history.state, history.bytes, answer.already_recorded, None, self._since(began))
        self._reporter.read(event)
        return opening

    def _with_notes(
        self, request: AskHistory, first: HistoryAnswer, jobs: tuple[Job, ...], until: float
    ) -> Steps[HistoryAnswer]:
        """The history with the notes that were made in time; the first one where there are none, or none can be had."""
        last_look = until - self._asker.deadlines.begin * _SECOND_READ_SHARE
        yield Await(tuple(job.done for job in jobs), max(last_look - self._asker.clock(), 0.0))
        if not any(job.done.done() and job.done.result().changed_the_block for job in jobs):
            return first
        again = yield from self._asker.once(request, HistoryAnswer, max(until - self._asker.clock(), 0.0))
        return first if isinstance(again, Failure) else again

    def user_message(self, turn: TurnState, given: Round) -> Steps[str]:
        """One round's message. The bytes are composed here, always: who answers decides only who accounts for them."""
        phase = Phase(given.phase)
        for name, size in (("system_bytes", given.system_bytes), ("tool_bytes", given.tool_bytes)):
            _in_range(name, size)
        began = self._asker.clock()
        mender = Mender()
        history = turn.history if phase is Phase.EXECUTE else None
        parts = Parts(
            context=mender.mend("context", given.context),
            history=history.text if history else "",
            task=mender.mend("task", given.task),
            prior_work=mender.mend("prior_work", given.prior_work),
        )
        request = AskMessage(
            keys=turn.keys,
            phase=phase,
            iteration=turn.next_iteration(phase, given.iteration),
            context=parts.context,
            history=history,
            task=parts.task,
            prior_work=parts.prior_work,
            system_bytes=given.system_bytes,
            tool_bytes=given.tool_bytes,
        )
        self._reporter.repaired(mender)
        message = compose(parts)
        answer = yield from self._asker.once(request, MessageAnswer, self._asker.patience.seconds(began))
        failure = _disagreement(answer, message)
        event = MessageComposed(
            keys=turn.keys,
            phase=phase,
            iteration=request.iteration,
            composer=Composer.CLIENT if failure else Composer.SIDECAR,
            size=prompt_size(message, parts),
            failure=failure,
            seconds=self._since(began),
            system_bytes=given.system_bytes,
            tool_bytes=given.tool_bytes,
        )
        self._reporter.composed(event, warn=failure is not None and turn.first_composing())
        return message

    def complete(self, turn: TurnState, ending: Ending, *, rewrite: bool = True) -> Steps[Receipt]:
        """Record a completed turn. A failure is in the receipt, after every retry that the contract allows.

        Its orders are filled behind it, unless `rewrite` forbids it.
        """
        mender = Mender()
        entry = Entry(
            turn_id=turn.keys.turn_id,
            completed_at=_aware(ending.completed_at or self._asker.now()),
            trigger=mender.mend("entry.trigger", ending.trigger),
            intent=mender.mend("entry.intent", ending.intent),
            calls=turn.calls,
            outcome=_mended_outcome(mender, ending.outcome),
            completed_work=mender.mend("entry.completed_work", ending.completed_work),
            blocked_on=mender.mend("entry.blocked_on", ending.blocked_on),
            decision=mender.mend("entry.decision", ending.decision),
        )
        self._reporter.repaired(mender)
        return (yield from self._append(turn, RunEnd.COMPLETED, entry, rewrite=rewrite))

    def interrupt(self, turn: TurnState, run_end: RunEnd) -> Steps[Receipt]:
        """Say that the run was suspended or crashed: one try, since nothing is recorded either way."""
        return (yield from self._append(turn, run_end, None))

    def settle(self, agent_handle: str, conversation_key: str, work_key: str) -> Steps[Settlement]:
        """Make a reply of what was unsent. A failure is in the settlement."""
        began = self._asker.clock()
        mender = Mender()
        request = AskSettle(
            mender.mend("agent_handle", agent_handle),
            mender.mend("conversation_key", conversation_key),
            mender.mend("work_key", work_key),
        )
        self._reporter.repaired(mender)
        answer, attempts = yield from self._asker.persist(
            request, Settlement, self._asker.deadlines.settle, retry.as_the_contract_allows
        )
        if isinstance(answer, Failure):
            settlement = Settlement(failure=answer, attempts=attempts)
        else:
            settlement = Settlement(answer.outcome, answer.entry_id, attempts=attempts)
        self._reporter.settled(TurnSettled(settlement, self._since(began)))
        return settlement

    def forget(self, scope: Scope) -> Steps[Forgotten]:
        """Erase. Raises LedgerError: an erasure that silently did not happen is the worst of all answers."""
        began = self._asker.clock()
        mender = Mender()
        request = AskForget(_mended_scope(mender, scope))
        self._reporter.repaired(mender)
        answer, _ = yield from self._asker.persist(
            request, Forgotten, self._asker.deadlines.forget, retry.as_the_contract_allows
        )
        if isinstance(answer, Failure):
            self._reporter.forgotten(TurnsForgotten(None, answer, self._since(began)))
            raise LedgerError(answer)
        self._reporter.forgotten(TurnsForgotten(answer, None, self._since(began)))
        return answer

    def state(self, opening: SavedTurn | str) -> TurnState:
        """A turn from its beginning, or from its saved form. Raises InvalidSavedTurn."""
        return TurnState(load(opening) if isinstance(opening, str) else opening, self._reporter)

    def _append(
        self, turn: TurnState, run_end: RunEnd, entry: Entry | None, *, rewrite: bool = False
    ) -> Steps[Receipt]:
        began = self._asker.clock()
        deadlines = self._asker.deadlines
        seconds, rule = (
            (deadlines.complete, retry.as_the_contract_allows) if entry else (deadlines.run_end, retry.never)
        )
        request = AskAppend(turn.keys, run_end, entry)
        answer, attempts = yield from self._asker.persist(request, AppendAnswer, seconds, rule)
        if isinstance(answer, Failure):
            receipt = Receipt(failure=answer, attempts=attempts)
        else:
            receipt = Receipt(
                answer.disposition, answer.skip_reason, answer.entry_id, answer.ordinal, attempts=attempts
            )
        self._reporter.ended(TurnEnded(turn.keys, run_end, receipt, self._since(began)))
        if isinstance(answer, AppendAnswer) and self._filler and rewrite and answer.orders:
            yield from self._filler.start(turn.keys, answer.orders)
        return receipt

    def _mended(self, keys: TurnKeys) -> TurnKeys:
        mender = Mender()
        mended = TurnKeys(
            mender.mend("agent_handle", keys.agent_handle),
            mender.mend("conversation_key", keys.conversation_key),
            mender.mend("turn_id", keys.turn_id),
            mender.mend("work_key", keys.work_key),
        )
        self._reporter.repaired(mender)
        return mended

    def _since(self, began: float) -> float:
        return self._asker.clock() - began


def _disagreement(answer: MessageAnswer | Failure, message: str) -> Failure | None:
    """Why the sidecar's answer does not stand for `message`; None if it does, byte for byte."""
    if isinstance(answer, Failure):
        return answer
    return None if answer.text == message else Failure("OK", BAD_ANSWER, "the sidecar composed other bytes")


def _mended_outcome(mender: Mender, outcome: Reply | Unsent) -> Reply | Unsent:
    match outcome:
        case Reply(text):
            return Reply(mender.mend("entry.reply", text))
        case Unsent(text):
            return Unsent(mender.mend("entry.unsent", text))
    raise TypeError(f"the outcome is a Reply or an Unsent, not {type(outcome).__name__}")


def _mended_scope(mender: Mender, scope: Scope) -> Scope:
    seat = conversation = ""
    if isinstance(scope, TurnScope | ConversationScope | SeatScope):
        seat = mender.mend("agent_handle", scope.agent_handle)
    if isinstance(scope, TurnScope | ConversationScope):
        conversation = mender.mend("conversation_key", scope.conversation_key)
    match scope:
        case TurnScope():
            return TurnScope(seat, conversation, mender.mend("work_key", scope.work_key))
        case ConversationScope():
            return ConversationScope(seat, conversation)
        case SeatScope():
            return SeatScope(seat)
    raise TypeError(f"a scope is a TurnScope, a ConversationScope or a SeatScope, not {type(scope).__name__}")


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("completed_at must carry a time zone")
    return moment.astimezone(UTC)


def _in_range(name: str, value: int | None) -> None:
    if value is not None and not 0 <= value < 2**64:
        raise ValueError(f"{name} must be 0 or more, not {value}")
