"""What a fuzzer throws its bytes at: decoding of every request, call lines and the block. No I/O."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from google.protobuf.message import DecodeError, Message
from turnledger.compose import HISTORY_HEADING
from turnledger.v1 import record_pb2, render_pb2

from sidecar.domain.block import CONTRACT, build
from sidecar.domain.calls import CallKind, SuppliedCall, keep, over_budget, shown
from sidecar.domain.entry import Entry
from sidecar.domain.errors import LedgerError
from sidecar.domain.orders import parse_order_id
from sidecar.server import decode
from tests.domain.block_reader import ReadEntry, read_block
from tests.domain.making import NO_LIMIT, keeping
from tests.support import asking

_PREAMBLE: Final = f"{HISTORY_HEADING}\n\n{CONTRACT}"

#: Parts the texts of one entry in a fuzzer's bytes: no UTF-8 holds it.
_APART: Final = b"\xff"

_KINDS: Final[Sequence[tuple[type[Message], Callable[[Any], object]]]] = (
    (record_pb2.AppendRequest, decode.append),
    (record_pb2.FitRequest, decode.fit),
    (record_pb2.SettleRequest, decode.settle),
    (record_pb2.ForgetRequest, decode.forget),
    (render_pb2.HistoryRequest, decode.history),
    (render_pb2.UserMessageRequest, decode.user_message),
)


def judge(data: bytes) -> None:
    """Let the first byte choose what the others are. Raises `AssertionError` where a promise is broken, and any bug."""
    which, rest = data[:1], data[1:]
    if not which:
        return
    place = which[0] % (2 * len(_KINDS))
    if place < len(_KINDS):
        _judge_request(*_KINDS[place], rest)
    else:
        _judge_entries([_entry(rest)])


def seeds() -> Sequence[bytes]:
    """Bytes to begin with: a good request of each kind, and entries of texts that look like the sidecar's own."""
    turn = asking.append()
    turn.entry.calls.add(name="mail", arguments='{"to":["a"],"n":1e9}', failed=True, error="no", sensitive=["to"])
    turn.entry.calls.add(name="look", arguments="{", kind=2)
    requests = [
        turn,
        asking.fit("1.0-0.1.note.1."),
        asking.settle(),
        asking.forget_turn("w1"),
        asking.history(hard_limit_bytes=4096),
        asking.user_message(history=render_pb2.History(state=render_pb2.HISTORY_STATE_EMPTY)),
    ]
    texts = [
        "## Task",
        "| a\r\nb\u2028",
        "Turn ended: x",
        'mail{"a":[1,"b"]}',
        "### 2026-01-01T00:00:00Z (turn a)",
        "a",
    ]
    entry = bytes([len(_KINDS)]) + _APART.join(text.encode() for text in texts)
    return [bytes([place]) + request.SerializeToString() for place, request in enumerate(requests)] + [entry]


def _judge_request(kind: type[Message], decoded: Callable[[Any], object], data: bytes) -> None:
    message = kind()
    try:
        message.ParseFromString(data)
        call = decoded(message)
    except (DecodeError, LedgerError):
        return
    if isinstance(call, decode.AppendCall) and call.turn is not None:
        _judge_entries([call.turn.entry, call.turn.entry])
        assert len(call.turn.supplied) == len(call.turn.entry.calls)
    elif kind is record_pb2.FitRequest:
        order_id = parse_order_id(data.decode(errors="ignore"))
        assert order_id is None or str(order_id) == data.decode(errors="ignore")


def _entry(data: bytes) -> Entry:
    """An entry whose fields are the texts that the bytes hold."""
    texts = [part.decode(errors="ignore") for part in data.split(_APART)] + [""] * 8
    calls = tuple(_call(text, CallKind.WRITE) for text in texts[8:-8][:4])
    calls += (_call(texts[5], CallKind.READ), _call(texts[6], CallKind.WRITE))
    return Entry(
        turn_id=texts[0] or "t",
        completed_at="2026-01-01T00:00:00Z",
        trigger=texts[1],
        intent=texts[2],
        calls=calls,
        delivered=len(data) % 2 == 0,
        final_text=texts[3],
        completed_work=texts[4],
        blocked_on=texts[7],
        decision="done",
    )


def _call(text: str, kind: CallKind) -> Any:
    """A call of the text's parts before and from its first brace; its error is the text after a line feed."""
    name, brace, rest = text.partition("{")
    arguments, _, error = rest.partition("\n")
    sensitive = frozenset({"a"}) if "a" in name else frozenset[str]()
    call = SuppliedCall(name or "t", brace + arguments, kind, bool(error), error, sensitive)
    for _ in over_budget(call):
        pass
    return keep(call)


def _judge_entries(entries: Sequence[Entry]) -> None:
    """The structure is ours alone, and each text comes back by stripping the prefix."""
    block = read_block(build(keeping(entries), NO_LIMIT).text, _PREAMBLE)
    assert len(block.headings) == 1 + len(block.entries) + bool(block.account_of)
    assert len(block.entries) + block.account_of == len(entries)
    for read, entry in zip(reversed(block.entries), reversed(entries), strict=False):
        assert _read(read) == _stored(entry)
        assert len(read.calls) == len(shown(entry.calls))
        assert [call.read for call in read.calls] == [call.kind is CallKind.READ for call in shown(entry.calls)]
        assert [call.failed for call in read.calls] == [call.failed for call in shown(entry.calls)]


def _read(entry: ReadEntry) -> dict[str, object]:
    sections: dict[str, object] = {name: text for name, text in entry.sections.items() if name != "calls"}
    return sections | {"decision": entry.decision}


def _stored(entry: Entry) -> dict[str, object]:
    texts = {
        "trigger": entry.trigger,
        "intent": entry.intent,
        "reply" if entry.delivered else "unsent": entry.final_text,
        "completed_work": entry.completed_work,
        "blocked_on": entry.blocked_on,
    }
    shown_texts: dict[str, object] = {name: text for name, text in texts.items() if text or name == "unsent"}
    return shown_texts | {"decision": entry.decision}
