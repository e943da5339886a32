"""Nothing is lost in silence, and nothing raw is kept: over all inputs, in the block and in the store's files."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from turnledger.compose import HISTORY_HEADING

from sidecar.config.settings import ConversationSession
from sidecar.domain.block import CONTRACT, build
from sidecar.domain.calls import CallKind, SuppliedCall, keep
from sidecar.domain.eligibility import Conversation, RunEnd
from sidecar.domain.entry import Entry
from sidecar.domain.fit import Verdict
from sidecar.domain.limits import READS_SHOWN
from sidecar.domain.orders import Order
from sidecar.domain.retention import TrimBound
from sidecar.services.record import CompletedTurn, Fit, Record
from tests.domain.block_reader import ReadBlock, ReadEntry, read_block
from tests.domain.call_reader import WITHHELD, Condensed, Members, Notice
from tests.domain.expectation import named
from tests.domain.strategies import hostile
from tests.support.stores import CONVERSATION, SEAT, entry, key, open_store, read, traces

_PREAMBLE: Final = f"{HISTORY_HEADING}\n\n{CONTRACT}"
_HERE: Final = Conversation(SEAT, CONVERSATION)
_LONG: Final = "qz7Xlong"
_SECRET: Final = "qz7Xsecret"  # noqa: S105 a made-up one

#: Texts within and over their budget. Those over it are marked all the way, so that any piece of them would be found.
_within: Final = hostile.map(lambda text: text[:200])
_over: Final = st.builds(lambda text, count: f"{text}{_LONG * count}", hostile, st.sampled_from((26, 30)))
_values: Final = st.one_of(_within, _over, st.lists(_over, min_size=1, max_size=2))
_kinds: Final = st.sampled_from(CallKind)


@st.composite
def _calls(draw: st.DrawFn) -> SuppliedCall:
    arguments = draw(st.dictionaries(st.sampled_from("abc"), _values, max_size=3))
    sensitive = frozenset[str]()
    if draw(st.booleans()):
        arguments["secret"] = _SECRET * draw(st.sampled_from((1, 30)))
        sensitive = frozenset({"secret"})
    failed = draw(st.booleans())
    error = (
        draw(st.one_of(st.just(""), _within, _over, st.just(f"no: {arguments.get('secret', '')}"))) if failed else ""
    )
    form = draw(st.sampled_from(("{}", "{}", "[{}]", "{}x")))
    return SuppliedCall("tool", form.format(json.dumps(arguments)), draw(_kinds), failed, error, sensitive)


_turns: Final = st.builds(
    lambda calls, times, **texts: entry(calls=tuple(calls) * times, **texts),
    st.lists(_calls(), max_size=4),
    st.sampled_from((1, 1, 6)),
    trigger=hostile,
    intent=hostile,
    text=hostile,
    delivered=st.booleans(),
    completed_work=hostile,
    blocked_on=hostile,
)


@settings(
    max_examples=12, phases=[Phase.explicit, Phase.generate], deadline=None, suppress_health_check=list(HealthCheck)
)
@given(st.lists(_turns, min_size=1, max_size=4), st.integers(0, 2))
async def test_nothing_raw_and_nothing_lost(turns: list[Entry], giant: int) -> None:
    """Before and after fits: no raw over-budget or sensitive text in any file, and no byte of a field untold."""
    with tempfile.TemporaryDirectory(prefix="turnledger-") as folder:
        path = Path(folder) / "store.db"
        async with open_store(path) as store:
            record = Record(store, ConversationSession, iter_ids().__next__, TrimBound(20))
            orders: list[Order] = []
            for number, turn in enumerate(turns):
                supplied: Any = turn.calls
                final_text = turn.final_text + "g" * (30_000 if number == giant else 0)
                kept = replace(turn, calls=tuple(map(keep, supplied)), turn_id=f"{number:08d}", final_text=final_text)
                turns[number] = replace(kept, calls=supplied)
                answer = await record.append(key(f"w{number}"), RunEnd.COMPLETED, CompletedTurn(kept, supplied))
                orders += answer.orders
            _nothing_raw(path)
            _all_told(read_block(build((await read(store)).kept, 10**12).text, _PREAMBLE), turns)
            fits = [Fit(str(order.order_id), order.text, "a rewrite") for order in orders]
            if fits:
                results = await record.fit(_HERE, fits)
                assert {result.judgement.verdict for result in results} == {Verdict.ACCEPTED}
            _nothing_raw(path)
            _all_told(read_block(build((await read(store)).kept, 10**12).text, _PREAMBLE), turns)
        _nothing_raw(path)


def iter_ids() -> Iterator[str]:
    """Entry ids, one after another."""
    return (f"id-{number}" for number in range(1_000_000))


def _nothing_raw(path: Path) -> None:
    assert traces(path, _LONG.encode()) == {}
    assert traces(path, _SECRET.encode()) == {}


def _all_told(block: ReadBlock, turns: list[Entry]) -> None:
    """Each turn is whole, with each of its fields, or is one of the account's, by its facts or by their count."""
    assert block.account_of + len(block.entries) == len(turns)
    assert len(block.items) + block.left_out == block.account_of
    for found, turn in zip(block.entries, turns[block.account_of :], strict=True):
        texts = {
            "trigger": turn.trigger,
            "intent": turn.intent,
            "reply" if turn.delivered else "unsent": turn.final_text,
            "completed_work": turn.completed_work,
            "blocked_on": turn.blocked_on,
        }
        for name, text in texts.items():
            assert found.sections.get(name, "") == text
        _calls_told(found, turn)


def _calls_told(found: ReadEntry, turn: Entry) -> None:
    supplied: list[Any] = list(turn.calls)
    reads = [place for place, call in enumerate(supplied) if call.kind is CallKind.READ]
    writes = [place for place, call in enumerate(supplied) if call.kind is CallKind.WRITE]
    shown = [supplied[place] for place in sorted(writes + reads[:READS_SHOWN])]
    assert found.reads_omitted == max(0, len(reads) - READS_SHOWN)
    for line, call in zip(found.calls, shown, strict=True):
        assert (line.read, line.failed) == (call.kind is CallKind.READ, call.failed)
        withheld = line.error == WITHHELD and bool(call.sensitive)
        assert not withheld or _SECRET in call.error or line.arguments == WITHHELD
        _is_told(line.error or "", call.error, sensitive=withheld)
        if isinstance(line.arguments, Members):
            values = json.loads(call.arguments)
            assert [name for name, _ in line.arguments.pairs] == sorted(values)
            for name, value in line.arguments.pairs:
                _is_told(value, values[name], sensitive=name in call.sensitive)
        elif call.sensitive:
            assert line.arguments == WITHHELD
        else:
            assert len(call.arguments) > 200 or not isinstance(line.arguments, Notice | Condensed)


def _is_told(value: Any, sent: Any, *, sensitive: bool = False) -> None:
    """The value is what was sent, or is announced as what stands for it."""
    text = sent if isinstance(sent, str) else json.dumps(sent, ensure_ascii=False, separators=(",", ":"))
    if sensitive:
        assert value == WITHHELD
    elif isinstance(value, Condensed):
        assert value.text == "a rewrite"
        assert _LONG in text
    elif isinstance(value, Notice):
        assert _LONG in text
        assert value != WITHHELD
        assert not isinstance(sent, str) or value == named(sent)
    else:
        assert value == sent
