"""Settle, Forget and Fit over the wire."""

import asyncio
from pathlib import Path

import pytest
from turnledger.v1 import record_pb2, render_pb2

from sidecar.config.settings import ConversationSession
from tests.support import asking
from tests.support.patience import eventually
from tests.support.running import Caller, running, settings
from tests.support.stores import no_traces, pinned, traces

OFF = ConversationSession(enabled=False)


async def _block(caller: Caller) -> str:
    return (await caller.render.History(asking.history())).history.text


async def test_settle_turns_unsent_into_reply(caller: Caller) -> None:
    """After Settle the next block says that the text was received; a second Settle says that it was."""
    appended = await caller.record.Append(asking.append(entry=asking.entry(unsent="Are you there?")))
    assert "You did NOT reply" in await _block(caller)
    settled = await caller.record.Settle(asking.settle())
    assert (settled.outcome, settled.entry_id) == (record_pb2.SETTLE_OUTCOME_SETTLED, appended.entry_id)
    text = await _block(caller)
    assert "You did NOT reply" not in text
    assert "You replied:\n| Are you there?" in text
    again = await caller.record.Settle(asking.settle())
    assert (again.outcome, again.entry_id) == (record_pb2.SETTLE_OUTCOME_ALREADY_REPLY, appended.entry_id)


async def test_settle_of_the_unknown_and_the_trimmed(tmp_path: Path) -> None:
    """An unknown turn and one that is no longer kept are outcomes of their own."""
    async with running(settings(tmp_path, session=ConversationSession(max_entries=1))) as caller:
        unknown = await caller.record.Settle(asking.settle())
        assert (unknown.outcome, unknown.entry_id) == (record_pb2.SETTLE_OUTCOME_NOT_FOUND, "")
        first = await caller.record.Append(asking.append("w1", entry=asking.entry(unsent="x")))
        await caller.record.Append(asking.append("w2"))
        trimmed = await caller.record.Settle(asking.settle())
        assert (trimmed.outcome, trimmed.entry_id) == (record_pb2.SETTLE_OUTCOME_NO_LONGER_KEPT, first.entry_id)


async def test_settled_entry_stays_a_duplicate(caller: Caller) -> None:
    """A redelivery after Settle does not make the text unsent again."""
    await caller.record.Append(asking.append(entry=asking.entry(unsent="x")))
    await caller.record.Settle(asking.settle())
    again = await caller.record.Append(asking.append(entry=asking.entry(unsent="x")))
    assert again.disposition == record_pb2.DISPOSITION_DUPLICATE
    assert "You did NOT reply" not in await _block(caller)


async def test_switch_stops_neither_settle_nor_forget(tmp_path: Path) -> None:
    """Settle, Forget, Fit and UserMessage go on while the ledger is switched off."""
    async with running(settings(tmp_path)) as caller:
        await caller.record.Append(asking.append("w1", entry=asking.entry(unsent="x")))
        await caller.record.Append(asking.append("w2"))
    async with running(settings(tmp_path, session=OFF)) as caller:
        settled = await caller.record.Settle(asking.settle())
        assert settled.outcome == record_pb2.SETTLE_OUTCOME_SETTLED
        assert (await caller.record.Forget(asking.forget_turn("w2"))).forgotten == 1
        assert (await caller.record.Fit(asking.fit("o"))).results[0].verdict == record_pb2.VERDICT_NOT_OPEN
        assert (await caller.render.UserMessage(asking.user_message())).text
    async with running(settings(tmp_path)) as caller:
        history = (await caller.render.History(asking.history())).history
        assert history.shown == 1
        assert "You did NOT reply" not in history.text


@pytest.mark.parametrize(
    ("request_", "count", "left"),
    [
        (asking.forget_turn("w1"), 1, 5),
        (asking.forget_conversation(), 2, 4),
        (asking.forget_seat(), 4, 2),
        (asking.forget_turn("nothing"), 0, 6),
        (asking.forget_conversation("nobody"), 0, 6),
        (asking.forget_seat("scou"), 0, 6),
    ],
    ids=["turn", "conversation", "seat", "no turn", "no conversation", "no seat"],
)
async def test_forget_takes_its_scope_and_no_more(
    caller: Caller, request_: record_pb2.ForgetRequest, count: int, left: int
) -> None:
    """Each scope answers how many went, and exactly those are gone."""
    places = [("scout", asking.CONVERSATION), ("scout", "other"), ("clerk", asking.CONVERSATION)]
    for seat, conversation in places:
        for work_key in ("w1", "w2"):
            await caller.record.Append(asking.append(work_key, agent_handle=seat, conversation_key=conversation))
    answer = await caller.record.Forget(request_)
    assert (answer.forgotten, answer.erasure) == (count, record_pb2.ERASURE_COMPLETE)
    asked = [asking.history(agent_handle=seat, conversation_key=conversation) for seat, conversation in places]
    assert sum([(await caller.render.History(each)).history.shown for each in asked]) == left
    assert (await caller.record.Forget(request_)).forgotten == 0


async def test_forgotten_words_leave_the_files(tmp_path: Path) -> None:
    """COMPLETE means that the words are in none of the store's files, while the sidecar runs."""
    async with running(settings(tmp_path)) as caller:
        await caller.record.Append(asking.append(entry=asking.entry(reply="qz7Xwire" * 4_000)))
        assert traces(tmp_path / "store.db", b"qz7Xwire")
        answer = await caller.record.Forget(asking.forget_seat())
        assert answer.erasure == record_pb2.ERASURE_COMPLETE
        assert traces(tmp_path / "store.db", b"qz7Xwire") == {}


async def test_forget_is_pending_while_a_reader_holds_the_log(tmp_path: Path) -> None:
    """Another program's open reader makes erasure wait, and only erasure: the turn is gone from every answer."""
    async with running(settings(tmp_path)) as caller:
        await caller.record.Append(asking.append(entry=asking.entry(reply="qz7Xwire" * 4_000)))
        with pinned(tmp_path / "store.db"):
            answer = await caller.record.Forget(asking.forget_turn("w1"))
            assert (answer.forgotten, answer.erasure) == (1, record_pb2.ERASURE_PENDING)
            history = (await caller.render.History(asking.history())).history
            assert history.state == render_pb2.HISTORY_STATE_EMPTY
            assert (await caller.record.Append(asking.append("w2"))).disposition == record_pb2.DISPOSITION_RECORDED
        await eventually(lambda: no_traces(tmp_path / "store.db", b"qz7Xwire"))


async def test_fit_answers_each_order_in_order(caller: Caller) -> None:
    """No order is open: each fit is answered as such, in the request's order, repeated ids too."""
    ids = ["o2", "", "o1", "o2", "x" * 10_000]
    answer = await caller.record.Fit(asking.fit(*ids))
    assert [result.order_id for result in answer.results] == ids
    assert {result.verdict for result in answer.results} == {record_pb2.VERDICT_NOT_OPEN}
    assert not any(result.over_by_bytes for result in answer.results)


async def test_cancelled_append_is_not_undone(caller: Caller) -> None:
    """Callers that cancel leave either no turn or a whole one, and the retry is answered accordingly."""
    for number in range(20):
        call = caller.record.Append(asking.append(f"w{number}"))
        await asyncio.sleep(0.0005 * number)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    answers = [await caller.record.Append(asking.append(f"w{number}")) for number in range(20)]
    assert sorted(answer.ordinal for answer in answers) == list(range(1, 21))
    assert len({answer.entry_id for answer in answers}) == 20
