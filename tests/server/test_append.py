"""Append over the wire: dispositions, skip reasons and their precedence, and callers at once."""

import asyncio
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from turnledger.v1 import entry_pb2, record_pb2, render_pb2

from sidecar.config.settings import ConversationSession
from tests.support import asking
from tests.support.running import Caller, calling, running, settings, started
from tests.support.stores import traces

RECORDED = record_pb2.DISPOSITION_RECORDED
DUPLICATE = record_pb2.DISPOSITION_DUPLICATE
SKIPPED = record_pb2.DISPOSITION_SKIPPED


async def _block(caller: Caller, **changes: str) -> str:
    return (await caller.render.History(asking.history(**changes))).history.text


async def test_recorded_then_duplicate(caller: Caller) -> None:
    """The first delivery is recorded with an id and ordinal 1, the second names the same entry; no order is open."""
    first = await caller.record.Append(asking.append())
    again = await caller.record.Append(asking.append(entry=asking.entry(reply="Another text.")))
    assert (first.disposition, first.ordinal, first.skip_reason) == (RECORDED, 1, 0)
    assert (again.disposition, again.ordinal, again.skip_reason) == (DUPLICATE, 1, 0)
    assert first.entry_id
    assert again.entry_id == first.entry_id
    assert not first.orders
    assert not again.orders
    assert "Another text." not in await _block(caller)


async def test_failed_turn_is_recorded(caller: Caller) -> None:
    """A turn that a guard ended as failed is in the ledger, and its block says how it ended."""
    answer = await caller.record.Append(asking.append(entry=asking.entry(unsent="", decision="failed")))
    assert answer.disposition == RECORDED
    text = await _block(caller)
    assert "Turn ended: failed" in text
    assert "did NOT reply" in text


#: Reasons in the order of their precedence, and what brings each about.
REASONS: dict[record_pb2.SkipReason.ValueType, dict[str, Any]] = {
    record_pb2.SKIP_REASON_RUN_CRASHED: {"run_end": record_pb2.RUN_END_CRASHED},
    record_pb2.SKIP_REASON_RUN_SUSPENDED: {"run_end": record_pb2.RUN_END_SUSPENDED},
    record_pb2.SKIP_REASON_NOT_REPRODUCIBLE: {"conversation_key": "event:0b5e"},
    record_pb2.SKIP_REASON_NO_WORK_KEY: {"work_key": ""},
}


@pytest.mark.parametrize("reasons", [c for n in (1, 2, 3) for c in itertools.combinations(REASONS, n)], ids=str)
async def test_first_reason_that_holds_is_given(
    caller: Caller, reasons: tuple[record_pb2.SkipReason.ValueType, ...]
) -> None:
    """Where several reasons hold the first in the stated order is given, and nothing is written."""
    changes: dict[str, Any] = {}
    for reason in reversed(reasons):
        changes |= REASONS[reason]
    answer = await caller.record.Append(asking.append(**changes))
    assert (answer.disposition, answer.skip_reason) == (SKIPPED, reasons[0])
    assert (answer.entry_id, answer.ordinal, list(answer.orders)) == ("", 0, [])
    conversation = str(changes.get("conversation_key", asking.CONVERSATION))
    assert await _block(caller, conversation_key=conversation) == ""


async def test_switch_comes_before_everything(tmp_path: Path) -> None:
    """Switched off, every well-formed Append is skipped as disabled, a known or forgotten turn too."""
    async with running(settings(tmp_path)) as caller:
        await caller.record.Append(asking.append("known"))
        await caller.record.Append(asking.append("gone"))
        await caller.record.Forget(asking.forget_turn("gone"))
    off = ConversationSession(enabled=False)
    async with running(settings(tmp_path, session=off)) as caller:
        requests = [asking.append("known"), asking.append("gone"), asking.append("new")]
        requests += [asking.append(**changes) for changes in REASONS.values()]
        for request in requests:
            answer = await caller.record.Append(request)
            assert (answer.disposition, answer.skip_reason) == (SKIPPED, record_pb2.SKIP_REASON_DISABLED)


async def test_forgotten_comes_last(caller: Caller) -> None:
    """A forgotten turn is skipped as forgotten, but for the reasons that come before, and is no duplicate."""
    await caller.record.Append(asking.append())
    await caller.record.Forget(asking.forget_turn("w1"))
    again = await caller.record.Append(asking.append())
    assert (again.disposition, again.skip_reason) == (SKIPPED, record_pb2.SKIP_REASON_FORGOTTEN)
    crashed = await caller.record.Append(asking.append(run_end=record_pb2.RUN_END_CRASHED))
    assert crashed.skip_reason == record_pb2.SKIP_REASON_RUN_CRASHED


@pytest.mark.parametrize("conversation", ["Event:1", "event", "xevent:1", " event:1", "events:1"])
async def test_only_the_very_prefix_is_not_reproducible(caller: Caller, conversation: str) -> None:
    """Conversations that merely look like an event's are recorded."""
    answer = await caller.record.Append(asking.append(conversation_key=conversation))
    assert answer.disposition == RECORDED


async def test_run_without_material_needs_no_entry(caller: Caller) -> None:
    """A crashed or suspended run is skipped without an entry, and with a malformed one."""
    for run_end in (record_pb2.RUN_END_CRASHED, record_pb2.RUN_END_SUSPENDED):
        for entry in (None, entry_pb2.Entry()):
            answer = await caller.record.Append(asking.append(run_end=run_end, entry=entry))
            assert answer.disposition == SKIPPED


@pytest.mark.parametrize("wire", ["socket", "tcp"])
async def test_a_hundred_callers_at_once_are_one_entry(tmp_path: Path, wire: str) -> None:
    """Of 100 simultaneous deliveries of one turn one is recorded and 99 are its duplicates."""
    listen = "127.0.0.1:0" if wire == "tcp" else None
    async with (
        started(settings(tmp_path, listen=listen)) as app,
        calling(app.address.target) as one,
        calling(app.address.target) as other,
    ):
        requests = [asking.append(entry=asking.entry(reply=f"text {number}")) for number in range(100)]
        calls = [(one, other)[number % 2].record.Append(each) for number, each in enumerate(requests)]
        answers = await asyncio.gather(*calls)
        assert sorted(answer.disposition for answer in answers) == [RECORDED] + [DUPLICATE] * 99
        assert {(answer.entry_id, answer.ordinal) for answer in answers} == {(answers[0].entry_id, 1)}
        winner = next(n for n, answer in enumerate(answers) if answer.disposition == RECORDED)
        text = await _block(one)
        assert text.count("You replied:") == 1
        assert f"| text {winner}" in text.splitlines()


async def test_two_seats_keep_ledgers_of_their_own(caller: Caller) -> None:
    """Two seats that serve one trigger of one conversation each record it, and each reads its own alone."""
    answers = [
        await caller.record.Append(asking.append(agent_handle=seat, entry=asking.entry(reply=f"I am {seat}.")))
        for seat in ("scout", "clerk")
    ]
    assert [(answer.disposition, answer.ordinal) for answer in answers] == [(RECORDED, 1)] * 2
    assert answers[0].entry_id != answers[1].entry_id
    for seat, other in (("scout", "clerk"), ("clerk", "scout")):
        text = await _block(caller, agent_handle=seat)
        assert f"I am {seat}." in text
        assert f"I am {other}." not in text


async def test_unknown_kind_of_call_is_a_write(caller: Caller) -> None:
    """A call of no kind, or of a kind from a later contract, is shown as a write."""
    calls = [
        entry_pb2.ToolCall(name=f"kind{kind}", arguments="{}", kind=kind)  # type: ignore[arg-type]
        for kind in (0, entry_pb2.CALL_KIND_WRITE, entry_pb2.CALL_KIND_READ, entry_pb2.CALL_KIND_META, 77)
    ]
    await caller.record.Append(asking.append(entry=asking.entry(calls=calls)))
    lines = [line for line in (await _block(caller)).splitlines() if line.startswith("- kind")]
    names = ["kind0", "kind1", "kind2", "kind77"]
    assert lines == [f"- {name}({{}}) → success" + (" (read)" if name == "kind2" else "") for name in names]


async def test_over_budget_text_never_reaches_the_files(tmp_path: Path) -> None:
    """Long and sensitive values are in none of the store's files, log included; size and digest are shown."""
    call = entry_pb2.ToolCall(
        name="mail",
        arguments='{"body":"%s","password":"HUSHHUSH"}' % ("LONGTEXT" * 40),
        sensitive=["password"],
        failed=True,
        error="ERRTEXT" * 40,
    )
    async with running(settings(tmp_path)) as caller:
        await caller.record.Append(asking.append(entry=asking.entry(calls=[call], reply="KEPTTEXT")))
        text = await _block(caller)
        assert text.count("not shown, digest") == 2
        assert '"password":(withheld)' in text
        assert traces(tmp_path / "store.db", b"KEPTTEXT")
        for needle in (b"LONGTEXT", b"HUSHHUSH", b"ERRTEXT"):
            assert traces(tmp_path / "store.db", needle) == {}


async def test_stored_text_comes_back_as_it_was(caller: Caller) -> None:
    """CR, NUL, line separators, emoji and right-to-left text come back byte for byte behind their prefix."""
    text = "a\r\nb\rc\x00d\u2028e\u0085f\U0001f642\u202eg\n\n"
    await caller.record.Append(asking.append(entry=asking.entry(trigger="", reply=text)))
    found = (await _block(caller)).split("You replied:\n", 1)[1]
    pieces = re.split("(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])", found)
    assert all(piece.startswith("| ") for piece in pieces[::2])
    assert "".join(piece[2:] if place % 2 == 0 else piece for place, piece in enumerate(pieces)) == text


async def test_megabytes_are_kept_whole(caller: Caller) -> None:
    """An entry of eight megabytes is recorded and shown without losing a byte."""
    text = "0123456789abcde\n" * (8 * 65_536)
    await caller.record.Append(asking.append(entry=asking.entry(reply=text)))
    history = (await caller.render.History(asking.history())).history
    assert history.text.replace("\n| ", "\n").endswith(text)
    assert history.state == render_pb2.HISTORY_STATE_PRESENT
