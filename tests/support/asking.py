"""Requests as an engine would send them: valid, each with one thing changed at will."""

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from turnledger.v1 import entry_pb2, record_pb2, render_pb2

SEAT = "scout"
CONVERSATION = "jira:POC-7"


def entry(**changes: Any) -> entry_pb2.Entry:
    """A small finished turn; `changes` are fields of the message, None leaves one out."""
    fields: dict[str, Any] = {
        "turn_id": "0a1b2c3d-0001",
        "completed_at": Timestamp(seconds=1_767_225_600),
        "trigger": "Please look at the gauge.",
        "decision": "done",
    }
    if "unsent" not in changes:
        fields["reply"] = "The gauge reads 4 bar."
    return entry_pb2.Entry(**{name: value for name, value in (fields | changes).items() if value is not None})


def append(work_key: str = "w1", **changes: Any) -> record_pb2.AppendRequest:
    """An Append of a completed run; `changes` are fields of the message, None leaves one out."""
    fields: dict[str, Any] = {
        "agent_handle": SEAT,
        "conversation_key": CONVERSATION,
        "work_key": work_key,
        "run_end": record_pb2.RUN_END_COMPLETED,
        "entry": entry(),
    }
    return record_pb2.AppendRequest(**{name: value for name, value in (fields | changes).items() if value is not None})


def history(**changes: Any) -> render_pb2.HistoryRequest:
    """A History of the usual conversation."""
    return render_pb2.HistoryRequest(**({"agent_handle": SEAT, "conversation_key": CONVERSATION} | changes))


def settle(work_key: str = "w1", **changes: Any) -> record_pb2.SettleRequest:
    """A Settle of the usual conversation's turn."""
    fields = {"agent_handle": SEAT, "conversation_key": CONVERSATION, "work_key": work_key}
    return record_pb2.SettleRequest(**(fields | changes))


def forget_turn(work_key: str, seat: str = SEAT, conversation: str = CONVERSATION) -> record_pb2.ForgetRequest:
    """A Forget of one turn."""
    scope = record_pb2.TurnScope(agent_handle=seat, conversation_key=conversation, work_key=work_key)
    return record_pb2.ForgetRequest(turn=scope)


def forget_conversation(seat: str = SEAT, conversation: str = CONVERSATION) -> record_pb2.ForgetRequest:
    """A Forget of a seat's conversation."""
    return record_pb2.ForgetRequest(
        conversation=record_pb2.ConversationScope(agent_handle=seat, conversation_key=conversation)
    )


def forget_seat(seat: str = SEAT) -> record_pb2.ForgetRequest:
    """A Forget of all of a seat."""
    return record_pb2.ForgetRequest(seat=record_pb2.SeatScope(agent_handle=seat))


def fit(*order_ids: str, **changes: Any) -> record_pb2.FitRequest:
    """A Fit with one rewrite for each order."""
    fits = [record_pb2.Fit(order_id=each, original="long", rewrite="short") for each in order_ids]
    return record_pb2.FitRequest(**({"agent_handle": SEAT, "conversation_key": CONVERSATION, "fits": fits} | changes))


def user_message(**changes: Any) -> render_pb2.UserMessageRequest:
    """A UserMessage of the executor's first round."""
    fields: dict[str, Any] = {
        "agent_handle": SEAT,
        "conversation_key": CONVERSATION,
        "turn_id": "0a1b2c3d-0002",
        "phase": render_pb2.PHASE_EXECUTE,
        "iteration": 1,
        "task": "Answer the question.",
    }
    return render_pb2.UserMessageRequest(**(fields | changes))
