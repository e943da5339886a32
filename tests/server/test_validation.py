"""INVALID_ARGUMENT: every field that breaks its rule is named, and none of its content is repeated."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from turnledger.v1 import entry_pb2, record_pb2, render_pb2

from tests.support import asking
from tests.support.refusal import refused
from tests.support.running import Caller

WIDE = "\u00e9" * 257  # 514 bytes in 257 characters: bytes are what counts

Send = Callable[[Caller], Awaitable[object]]


def _appending(**changes: Any) -> Send:
    return lambda caller: caller.record.Append(asking.append(**changes))


def _appending_entry(**changes: Any) -> Send:
    return _appending(entry=asking.entry(**changes))


def _calling_tool(**fields: Any) -> Send:
    good = entry_pb2.ToolCall(name="look", arguments="{}")
    return _appending_entry(calls=[good, entry_pb2.ToolCall(**fields)])


def _reading(**changes: Any) -> Send:
    return lambda caller: caller.render.History(asking.history(**changes))


def _composing(**changes: Any) -> Send:
    return lambda caller: caller.render.UserMessage(asking.user_message(**changes))


def _settling(**changes: Any) -> Send:
    return lambda caller: caller.record.Settle(asking.settle(**changes))


def _fitting(**changes: Any) -> Send:
    return lambda caller: caller.record.Fit(asking.fit("o1", **changes))


def _forgetting(request: record_pb2.ForgetRequest) -> Send:
    return lambda caller: caller.record.Forget(request)


CASES: dict[str, tuple[Send, set[str]]] = {
    "append no seat": (_appending(agent_handle=""), {"agent_handle"}),
    "append no conversation": (_appending(conversation_key=""), {"conversation_key"}),
    "append wide keys": (_appending(agent_handle=WIDE, conversation_key=WIDE), {"agent_handle", "conversation_key"}),
    "append wide work key": (_appending(work_key="\u00e9" * 129), {"work_key"}),
    "append no run end": (_appending(run_end=None), {"run_end"}),
    "append unknown run end": (_appending(run_end=99), {"run_end"}),
    "append no entry": (_appending(entry=None), {"entry"}),
    "append nothing": (
        lambda caller: caller.record.Append(record_pb2.AppendRequest()),
        {"agent_handle", "conversation_key", "run_end"},
    ),
    "entry no turn id": (_appending_entry(turn_id=""), {"entry.turn_id"}),
    "entry wide turn id": (_appending_entry(turn_id="t" * 257), {"entry.turn_id"}),
    "entry no time": (_appending_entry(completed_at=None), {"entry.completed_at"}),
    "entry before year 1": (_appending_entry(completed_at=Timestamp(seconds=-62_135_596_801)), {"entry.completed_at"}),
    "entry after year 9999": (
        _appending_entry(completed_at=Timestamp(seconds=253_402_300_800)),
        {"entry.completed_at"},
    ),
    "entry absurd time": (_appending_entry(completed_at=Timestamp(seconds=2**63 - 1)), {"entry.completed_at"}),
    "entry negative nanos": (_appending_entry(completed_at=Timestamp(nanos=-1)), {"entry.completed_at"}),
    "entry no outcome": (_appending_entry(reply=None), {"entry.outcome"}),
    "entry no decision": (_appending_entry(decision=""), {"entry.decision"}),
    "entry shouted decision": (_appending_entry(decision="Done"), {"entry.decision"}),
    "entry decision with line break": (_appending_entry(decision="done\n"), {"entry.decision"}),
    "entry wide decision": (_appending_entry(decision="d" * 33), {"entry.decision"}),
    "entry empty": (
        _appending(entry=entry_pb2.Entry()),
        {"entry.turn_id", "entry.completed_at", "entry.outcome", "entry.decision"},
    ),
    "call no name": (_calling_tool(arguments="{}"), {"entry.calls[1].name"}),
    "call error without failure": (_calling_tool(name="n", error="e"), {"entry.calls[1].error"}),
    "history no keys": (_reading(agent_handle="", conversation_key=""), {"agent_handle", "conversation_key"}),
    "history wide work key": (_reading(work_key="w" * 257), {"work_key"}),
    "history low hard limit": (_reading(hard_limit_bytes=4_095), {"hard_limit_bytes"}),
    "message no keys": (_composing(agent_handle="", conversation_key=""), {"agent_handle", "conversation_key"}),
    "message no turn id": (_composing(turn_id=""), {"turn_id"}),
    "message no phase": (_composing(phase=render_pb2.PHASE_UNSPECIFIED), {"phase"}),
    "message round 0": (_composing(iteration=0), {"iteration"}),
    "message history without a state": (_composing(history=render_pb2.History(text="x")), {"history.state"}),
    "message history of another digest": (
        _composing(history=render_pb2.History(state=render_pb2.HISTORY_STATE_PRESENT, text="x", digest="0" * 64)),
        {"history.digest"},
    ),
    "settle no keys": (
        _settling(agent_handle="", conversation_key="", work_key=""),
        {"agent_handle", "conversation_key", "work_key"},
    ),
    "settle wide work key": (_settling(work_key="w" * 257), {"work_key"}),
    "fit no keys": (_fitting(agent_handle="", conversation_key=""), {"agent_handle", "conversation_key"}),
    "fit nothing": (_fitting(fits=[]), {"fits"}),
    "fit too many": (_fitting(fits=[record_pb2.Fit()] * 100_001), {"fits"}),
    "forget no scope": (_forgetting(record_pb2.ForgetRequest()), {"scope"}),
    "forget empty turn": (
        _forgetting(asking.forget_turn("", "", "")),
        {"turn.agent_handle", "turn.conversation_key", "turn.work_key"},
    ),
    "forget conversation without its key": (
        _forgetting(asking.forget_conversation("s", "")),
        {"conversation.conversation_key"},
    ),
    "forget empty seat": (_forgetting(asking.forget_seat("")), {"seat.agent_handle"}),
}


@pytest.mark.parametrize("name", CASES)
async def test_each_bad_field_is_named(caller: Caller, name: str) -> None:
    """A request is refused once, with every field that breaks a rule, and no other."""
    send, fields = CASES[name]
    refusal = await refused(send(caller))
    assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
    assert (refusal.domain, refusal.reason) == ("turnledger", "INVALID")
    assert refusal.fields.keys() == fields
    assert all(refusal.fields.values())
    assert refusal.retry_after_s is None


async def test_bad_request_leaves_nothing(caller: Caller) -> None:
    """A refused Append is not in the ledger."""
    for name in ("entry no decision", "append unknown run end", "call no name"):
        await refused(CASES[name][0](caller))
    assert (await caller.render.History(asking.history())).history.state == render_pb2.HISTORY_STATE_EMPTY


async def test_refusal_repeats_no_content(caller: Caller) -> None:
    """Neither message nor violations hold a word of what was sent."""
    bad = asking.entry(decision="SECRETWORD", trigger="SECRETWORD", turn_id="SECRETWORD" * 30)
    refusal = await refused(caller.record.Append(asking.append("SECRETWORD" * 30, entry=bad)))
    assert "SECRETWORD" not in refusal.raw + str(refusal.fields)


async def test_limits_themselves_are_taken(caller: Caller) -> None:
    """Keys of 512 bytes, ids of 256, a decision of 32 and the first and last instant are within the rules."""
    for seconds in (-62_135_596_800, 253_402_300_799):
        turn = asking.entry(turn_id="t" * 256, decision="a_" * 16, completed_at=Timestamp(seconds=seconds))
        keys = {"agent_handle": "s" * 512, "conversation_key": "\u00e9" * 256}
        answer = await caller.record.Append(asking.append(f"{seconds:x}".ljust(256, "w"), entry=turn, **keys))
        assert answer.disposition == record_pb2.DISPOSITION_RECORDED
    assert (await caller.render.History(asking.history(hard_limit_bytes=4_096, **keys))).history.shown == 2


METHODS = ["Record/Append", "Record/Fit", "Record/Settle", "Record/Forget", "Render/History", "Render/UserMessage"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "data",
    [
        b"\xff",
        b"\x0a\x05ab",
        b"\x0a\x02\xff\xfe\x12\x01c",
        b"\x0a\x03\xed\xa0\x80\x12\x01c",
        b"\x0a\x02\xc0\x80\x12\x01c",
    ],
    ids=["no tag", "cut short", "not UTF-8", "a lone surrogate", "an overlong NUL"],
)
async def test_bytes_that_do_not_parse(caller: Caller, method: str, data: bytes) -> None:
    """Bytes that are no message are the caller's mistake, said in our words and not the parser's."""
    if method == "Record/Forget" and data.startswith(b"\x0a") and len(data) > 4:
        data = b"\x0a" + bytes([len(data)]) + data
    refusal = await refused(caller.send(method, data))
    assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
    assert (refusal.domain, refusal.reason) == ("turnledger", "INVALID")
    assert refusal.fields
    assert "pars" not in refusal.raw.lower()
    assert "decod" not in refusal.raw.lower()


async def test_fields_of_a_later_contract_are_let_be(caller: Caller) -> None:
    """A request with a field that this sidecar does not know is served."""
    data = asking.history().SerializeToString() + b"\xfa\x7f\x03new"
    answer = render_pb2.HistoryResponse.FromString(await caller.send("Render/History", data))
    assert answer.history.state == render_pb2.HISTORY_STATE_EMPTY


async def test_a_thousand_bad_fields_stay_a_status(caller: Caller) -> None:
    """However many fields are bad, the status reaches the caller whole: some are named, the rest is counted."""
    nameless = [entry_pb2.ToolCall(arguments="{}") for _ in range(1_000)]
    refusal = await refused(caller.record.Append(asking.append(entry=asking.entry(calls=nameless))))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID")
    assert len(refusal.fields) == 20
    assert "and 980 more" in refusal.message
