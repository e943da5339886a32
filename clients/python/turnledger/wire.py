"""Between the core's plain requests and answers and the contract's messages: the client's one place with stubs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from google.protobuf.message import DecodeError, Message

from turnledger.answers import (
    ConversationScope,
    Disposition,
    Erasure,
    Forgotten,
    History,
    HistoryState,
    SeatScope,
    Settlement,
    SettleOutcome,
    SkipReason,
    TurnScope,
)
from turnledger.entry import Entry, Reply, ToolCall
from turnledger.failure import BAD_ANSWER, TOO_LARGE, Failure
from turnledger.limits import MESSAGE_BYTES
from turnledger.order import Order, OrderKind, Verdict
from turnledger.steps import (
    Answer,
    AppendAnswer,
    AskAppend,
    AskFit,
    AskForget,
    AskHistory,
    AskMessage,
    AskSettle,
    FitAnswer,
    HistoryAnswer,
    MessageAnswer,
    Request,
)
from turnledger.v1 import entry_pb2, record_pb2, render_pb2


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC: its path, how its request is said and how its answer is read (raising ValueError at what is not one)."""

    path: str
    encode: Callable[[Any], Message]
    decode: Callable[[bytes], Answer]


def encode(request: Request) -> tuple[str, bytes] | Failure:
    """The path and the bytes to send; a failure if they are over the message limit, which is found before sending."""
    method = _METHODS[type(request)]
    message = method.encode(request)
    size = message.ByteSize()
    if size > MESSAGE_BYTES:
        return Failure("RESOURCE_EXHAUSTED", TOO_LARGE, f"the request has {size} bytes of at most {MESSAGE_BYTES}")
    return method.path, message.SerializeToString()


def decode(request: Request, answer: bytes) -> Answer | Failure:
    """What the answer to `request` says; a failure if the contract does not allow it."""
    try:
        return _METHODS[type(request)].decode(answer)
    except (DecodeError, ValueError) as error:
        return Failure("OK", BAD_ANSWER, str(error))


def _ask_history(ask: AskHistory) -> Message:
    return render_pb2.HistoryRequest(
        agent_handle=ask.keys.agent_handle,
        conversation_key=ask.keys.conversation_key,
        work_key=ask.keys.work_key,
        hard_limit_bytes=ask.hard_limit_bytes,
    )


def _history_answer(answer: bytes) -> HistoryAnswer:
    response = render_pb2.HistoryResponse.FromString(answer)
    said = response.history
    history = History(
        state=HistoryState(_name(render_pb2.HistoryState, said.state)),
        text=said.text,
        digest=said.digest,
        bytes=said.bytes,
        shown=said.shown,
        condensed=said.condensed,
        left_out=said.left_out,
        no_longer_kept=said.no_longer_kept,
        unreadable=said.unreadable,
    )
    if bool(history.text) != (history.state is HistoryState.PRESENT):
        raise ValueError("the history's text does not go with its state")
    if history.digest != sha256(history.text.encode()).hexdigest():
        raise ValueError("the history's text does not go with its digest")
    return HistoryAnswer(history, response.already_recorded, _orders(response.orders))


def _ask_message(ask: AskMessage) -> Message:
    return render_pb2.UserMessageRequest(
        agent_handle=ask.keys.agent_handle,
        conversation_key=ask.keys.conversation_key,
        turn_id=ask.keys.turn_id,
        phase=_number(render_pb2.Phase, ask.phase),
        iteration=ask.iteration,
        context=ask.context,
        history=None if ask.history is None else _history(ask.history),
        task=ask.task,
        prior_work=ask.prior_work,
        system_bytes=ask.system_bytes,
        tool_bytes=ask.tool_bytes,
    )


def _history(history: History) -> render_pb2.History:
    return render_pb2.History(
        state=_number(render_pb2.HistoryState, history.state),
        text=history.text,
        digest=history.digest,
        bytes=history.bytes,
        shown=history.shown,
        condensed=history.condensed,
        left_out=history.left_out,
        no_longer_kept=history.no_longer_kept,
        unreadable=history.unreadable,
    )


def _message_answer(answer: bytes) -> MessageAnswer:
    return MessageAnswer(render_pb2.UserMessageResponse.FromString(answer).text)


def _ask_append(ask: AskAppend) -> Message:
    return record_pb2.AppendRequest(
        agent_handle=ask.keys.agent_handle,
        conversation_key=ask.keys.conversation_key,
        work_key=ask.keys.work_key,
        run_end=_number(record_pb2.RunEnd, ask.run_end),
        entry=None if ask.entry is None else _entry(ask.entry),
    )


def _entry(entry: Entry) -> entry_pb2.Entry:
    message = entry_pb2.Entry(
        turn_id=entry.turn_id,
        trigger=entry.trigger,
        intent=entry.intent,
        calls=[_call(call) for call in entry.calls],
        completed_work=entry.completed_work,
        blocked_on=entry.blocked_on,
        decision=entry.decision,
    )
    message.completed_at.FromDatetime(entry.completed_at)
    if isinstance(entry.outcome, Reply):
        message.reply = entry.outcome.text
    else:
        message.unsent = entry.outcome.text
    return message


def _call(call: ToolCall) -> entry_pb2.ToolCall:
    return entry_pb2.ToolCall(
        name=call.name,
        arguments=call.arguments,
        kind=_number(entry_pb2.CallKind, call.kind),
        failed=call.failed,
        error=call.error,
        sensitive=call.sensitive,
    )


def _append_answer(answer: bytes) -> AppendAnswer:
    response = record_pb2.AppendResponse.FromString(answer)
    disposition = Disposition(_name(record_pb2.Disposition, response.disposition))
    if (disposition is Disposition.SKIPPED) == bool(response.entry_id):
        raise ValueError("the entry's id does not go with the disposition")
    try:
        reason = SkipReason(_name(record_pb2.SkipReason, response.skip_reason))
    except ValueError:  # none, or one of a newer sidecar: skipped is skipped
        reason = None
    return AppendAnswer(disposition, reason, response.entry_id, response.ordinal, _orders(response.orders))


def _orders(messages: Iterable[entry_pb2.Order]) -> tuple[Order, ...]:
    """The orders of a kind that this library knows: no other may cost the answer that carries it."""
    kinds = {_number(entry_pb2.OrderKind, kind): kind for kind in OrderKind}
    return tuple(
        Order(said.order_id, kinds[said.kind], said.text, said.limit_bytes, said.instructions, said.closing)
        for said in messages
        if said.kind in kinds
    )


def _ask_fit(ask: AskFit) -> Message:
    return record_pb2.FitRequest(
        agent_handle=ask.keys.agent_handle,
        conversation_key=ask.keys.conversation_key,
        fits=[record_pb2.Fit(order_id=ask.order_id, original=ask.original, rewrite=ask.rewrite)],
    )


def _fit_answer(answer: bytes) -> FitAnswer:
    (result,) = record_pb2.FitResponse.FromString(answer).results
    return FitAnswer(Verdict(_name(record_pb2.Verdict, result.verdict)), result.over_by_bytes)


def _ask_settle(ask: AskSettle) -> Message:
    return record_pb2.SettleRequest(
        agent_handle=ask.agent_handle, conversation_key=ask.conversation_key, work_key=ask.work_key
    )


def _settlement(answer: bytes) -> Settlement:
    response = record_pb2.SettleResponse.FromString(answer)
    return Settlement(SettleOutcome(_name(record_pb2.SettleOutcome, response.outcome)), response.entry_id)


def _ask_forget(ask: AskForget) -> Message:
    match ask.scope:
        case TurnScope(seat, conversation, work_key):
            turn = record_pb2.TurnScope(agent_handle=seat, conversation_key=conversation, work_key=work_key)
            return record_pb2.ForgetRequest(turn=turn)
        case ConversationScope(seat, conversation):
            side = record_pb2.ConversationScope(agent_handle=seat, conversation_key=conversation)
            return record_pb2.ForgetRequest(conversation=side)
        case SeatScope(seat):
            return record_pb2.ForgetRequest(seat=record_pb2.SeatScope(agent_handle=seat))


def _forgotten(answer: bytes) -> Forgotten:
    response = record_pb2.ForgetResponse.FromString(answer)
    return Forgotten(response.forgotten, Erasure(_name(record_pb2.Erasure, response.erasure)))


def _prefix(enum: Any) -> str:
    """What the contract puts before each name of an enum: CALL_KIND_ for CallKind."""
    return str(enum.Name(0)).removesuffix("UNSPECIFIED")


def _name(enum: Any, number: int) -> str:
    """An enum's value as this library names it. Raises ValueError at a number that the contract does not have."""
    return str(enum.Name(number)).removeprefix(_prefix(enum)).lower()


def _number(enum: Any, name: str) -> Any:
    return enum.Value(_prefix(enum) + name.upper())


_RENDER: Final = render_pb2.DESCRIPTOR.services_by_name["Render"].full_name
_RECORD: Final = record_pb2.DESCRIPTOR.services_by_name["Record"].full_name

_METHODS: Final[dict[type, Method]] = {
    AskHistory: Method(f"/{_RENDER}/History", _ask_history, _history_answer),
    AskMessage: Method(f"/{_RENDER}/UserMessage", _ask_message, _message_answer),
    AskAppend: Method(f"/{_RECORD}/Append", _ask_append, _append_answer),
    AskFit: Method(f"/{_RECORD}/Fit", _ask_fit, _fit_answer),
    AskSettle: Method(f"/{_RECORD}/Settle", _ask_settle, _settlement),
    AskForget: Method(f"/{_RECORD}/Forget", _ask_forget, _forgotten),
}
