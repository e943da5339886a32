"""From proto to the domain. Every function raises `LedgerError` INVALID, naming each field that breaks its rule."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from turnledger.compose import Parts
from turnledger.limits import HARD_LIMIT_FLOOR_BYTES, ITEMS
from turnledger.v1 import entry_pb2, record_pb2, render_pb2

from sidecar.domain.calls import Call, CallKind, SuppliedCall, keep
from sidecar.domain.eligibility import Conversation, RunEnd, TurnKey
from sidecar.domain.entry import Entry
from sidecar.domain.prompt import Phase, Round
from sidecar.server.check import Check
from sidecar.services.record import CompletedTurn, Fit, Scope, Seat

_KINDS: Final = {entry_pb2.CALL_KIND_READ: CallKind.READ, entry_pb2.CALL_KIND_META: CallKind.META}

_RUN_ENDS: Final = {
    record_pb2.RUN_END_COMPLETED: RunEnd.COMPLETED,
    record_pb2.RUN_END_CRASHED: RunEnd.CRASHED,
    record_pb2.RUN_END_SUSPENDED: RunEnd.SUSPENDED,
}

_PHASES: Final = {render_pb2.PHASE_EXECUTE: Phase.EXECUTE, render_pb2.PHASE_REVIEW: Phase.REVIEW}

_DECISION: Final = re.compile("[a-z_]{1,32}")


@dataclass(frozen=True, slots=True)
class AppendCall:
    """What an AppendRequest asks for. `turn` is None where the run left nothing to record."""

    key: TurnKey
    run_end: RunEnd
    turn: CompletedTurn | None


@dataclass(frozen=True, slots=True)
class HistoryCall:
    """What a HistoryRequest asks for. `hard_limit` is in bytes, None for no limit."""

    key: TurnKey
    hard_limit: int | None


def append(request: record_pb2.AppendRequest) -> AppendCall:
    """An Append. Its entry is judged only if the run completed."""
    check = Check()
    conversation = _conversation(check, request.agent_handle, request.conversation_key)
    key = TurnKey(conversation, check.optional_identifier(request.work_key, "work_key"))
    run_end = _RUN_ENDS.get(request.run_end)
    check.that(run_end is not None, "run_end", "must say how the run ended")
    completed = run_end is RunEnd.COMPLETED
    check.that(request.HasField("entry") or not completed, "entry", "must be set for a run that completed")
    completed_at = _check_entry(check, request.entry) if completed and request.HasField("entry") else ""
    check.finish()
    return AppendCall(key, run_end or RunEnd.COMPLETED, _turn_of(request.entry, completed_at) if completed else None)


def settle(request: record_pb2.SettleRequest) -> TurnKey:
    """The turn that a Settle names."""
    check = Check()
    key = _turn(check, "", request)
    check.finish()
    return key


def forget(request: record_pb2.ForgetRequest) -> Scope:
    """The scope that a Forget names; an empty one never widens it."""
    check = Check()
    scope = _scope(check, request)
    check.finish()
    return scope


def fit(request: record_pb2.FitRequest) -> tuple[Conversation, list[Fit]]:
    """The conversation, and the rewrites for its orders."""
    check = Check()
    conversation = _conversation(check, request.agent_handle, request.conversation_key)
    check.that(0 < len(request.fits) <= ITEMS, "fits", f"must hold 1 to {ITEMS}")
    check.finish()
    return conversation, [Fit(each.order_id, each.original, each.rewrite) for each in request.fits]


def history(request: render_pb2.HistoryRequest) -> HistoryCall:
    """The conversation that a History reads."""
    check = Check()
    conversation = _conversation(check, request.agent_handle, request.conversation_key)
    key = TurnKey(conversation, check.optional_identifier(request.work_key, "work_key"))
    limit = request.hard_limit_bytes
    rule = f"must be 0 for no limit, or at least {HARD_LIMIT_FLOOR_BYTES}"
    check.that(limit == 0 or limit >= HARD_LIMIT_FLOOR_BYTES, "hard_limit_bytes", rule)
    check.finish()
    return HistoryCall(key, limit or None)


def user_message(request: render_pb2.UserMessageRequest) -> tuple[Round, Parts]:
    """The round, and the parts of its message."""
    check = Check()
    conversation = _conversation(check, request.agent_handle, request.conversation_key)
    turn_id = check.identifier(request.turn_id, "turn_id")
    check.that(request.phase != render_pb2.PHASE_UNSPECIFIED, "phase", "must be named")
    check.that(request.iteration > 0, "iteration", "must count from 1")
    block = _block(check, request)
    check.finish()
    this = Round(
        conversation,
        turn_id,
        _PHASES.get(request.phase, Phase.OTHER),
        request.iteration,
        request.system_bytes if request.HasField("system_bytes") else None,
        request.tool_bytes if request.HasField("tool_bytes") else None,
    )
    return this, Parts(request.context, block, request.task, request.prior_work)


def _conversation(check: Check, agent_handle: str, conversation_key: str, under: str = "") -> Conversation:
    return Conversation(
        check.key(agent_handle, f"{under}agent_handle"), check.key(conversation_key, f"{under}conversation_key")
    )


def _turn(check: Check, under: str, named: record_pb2.SettleRequest | record_pb2.TurnScope) -> TurnKey:
    conversation = _conversation(check, named.agent_handle, named.conversation_key, under)
    return TurnKey(conversation, check.identifier(named.work_key, f"{under}work_key"))


def _scope(check: Check, request: record_pb2.ForgetRequest) -> Scope:
    match request.WhichOneof("scope"):
        case "turn":
            return _turn(check, "turn.", request.turn)
        case "conversation":
            named = request.conversation
            return _conversation(check, named.agent_handle, named.conversation_key, "conversation.")
        case "seat":
            return Seat(check.key(request.seat.agent_handle, "seat.agent_handle"))
        case _:
            check.that(False, "scope", "must name a turn, a conversation or a seat")
            return Seat("")


def _block(check: Check, request: render_pb2.UserMessageRequest) -> str:
    """The block as text; the digest tells whether what was kept through a turn is still what History answered."""
    kept = request.history
    if not request.HasField("history"):
        return ""
    known = kept.state != render_pb2.HISTORY_STATE_UNSPECIFIED
    check.that(known, "history.state", "must be the one that History answered")
    if kept.state != render_pb2.HISTORY_STATE_PRESENT:
        return ""
    text = kept.text
    same = hashlib.sha256(text.encode()).hexdigest() == kept.digest
    check.that(same, "history.digest", "must be the SHA-256 of history.text, as History answered it")
    return text


def _check_entry(check: Check, entry: entry_pb2.Entry) -> str:
    """Checks it. Answers when the turn was completed, as text."""
    check.identifier(entry.turn_id, "entry.turn_id")
    completed_at = _completed_at(entry)
    check.that(completed_at != "", "entry.completed_at", "must be set, in the years 1 to 9999")
    check.that(entry.WhichOneof("outcome") is not None, "entry.outcome", "must be set: reply or unsent, empty or not")
    check.that(_DECISION.fullmatch(entry.decision) is not None, "entry.decision", "must match [a-z_]{1,32}")
    check.that(len(entry.calls) <= ITEMS, "entry.calls", f"must hold at most {ITEMS}")
    for place, call in enumerate(entry.calls[:ITEMS]):
        check.that(len(call.sensitive) <= ITEMS, f"entry.calls[{place}].sensitive", f"must hold at most {ITEMS}")
        check.that(call.name != "", f"entry.calls[{place}].name", "must not be empty")
        check.that(call.failed or not call.error, f"entry.calls[{place}].error", "must be empty unless the call failed")
    return completed_at


def _completed_at(entry: entry_pb2.Entry) -> str:
    if not entry.HasField("completed_at"):
        return ""
    try:
        return entry.completed_at.ToJsonString()
    except ValueError:
        return ""


def _turn_of(entry: entry_pb2.Entry, completed_at: str) -> CompletedTurn:
    supplied = tuple([_call(call) for call in entry.calls])
    return CompletedTurn(_entry(entry, completed_at, tuple([keep(call) for call in supplied])), supplied)


def _entry(entry: entry_pb2.Entry, completed_at: str, calls: tuple[Call, ...]) -> Entry:
    delivered = entry.WhichOneof("outcome") == "reply"
    return Entry(
        turn_id=entry.turn_id,
        completed_at=completed_at,
        trigger=entry.trigger,
        intent=entry.intent,
        calls=calls,
        delivered=delivered,
        final_text=entry.reply if delivered else entry.unsent,
        completed_work=entry.completed_work,
        blocked_on=entry.blocked_on,
        decision=entry.decision,
    )


def _call(call: entry_pb2.ToolCall) -> SuppliedCall:
    """An unknown kind, also one of a later contract, is a write."""
    kind = _KINDS.get(call.kind, CallKind.WRITE)
    return SuppliedCall(call.name, call.arguments, kind, call.failed, call.error, frozenset(call.sensitive))
