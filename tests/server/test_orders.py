"""Orders over the wire: what is asked for, what a bad fit cannot change, and what a good one does."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from turnledger.v1 import entry_pb2, record_pb2, render_pb2

from sidecar.config.settings import ConversationSession
from tests.support import asking
from tests.support.running import Caller, running, settings

ACCEPTED: Final = record_pb2.VERDICT_ACCEPTED
NOT_OPEN: Final = record_pb2.VERDICT_NOT_OPEN

_BODY: Final = "Dear Kim, order 4711 is on its way to you and should arrive soon. " * 6
_ERROR: Final = "The mail server of acme.example said no to it, and then again no. " * 6
_GOOD: Final = "A mail to Kim about order 4711."


def _failed_call(body: str = _BODY, error: str = _ERROR) -> entry_pb2.ToolCall:
    arguments = json.dumps({"body": body, "to": "kim"})
    return entry_pb2.ToolCall(
        name="send", arguments=arguments, kind=entry_pb2.CALL_KIND_WRITE, failed=True, error=error
    )


async def _sent(caller: Caller, *pairs: tuple[entry_pb2.Order, str], **keys: str) -> list[record_pb2.FitResult]:
    fits = [record_pb2.Fit(order_id=order.order_id, original=order.text, rewrite=text) for order, text in pairs]
    return list((await caller.record.Fit(asking.fit(fits=fits, **keys))).results)


async def _fit(caller: Caller, order: entry_pb2.Order, text: str, **keys: str) -> record_pb2.Verdict.ValueType:
    [result] = await _sent(caller, (order, text), **keys)
    assert result.order_id == order.order_id
    return result.verdict


async def _history(caller: Caller) -> render_pb2.HistoryResponse:
    return await caller.render.History(asking.history())


@dataclass(frozen=True)
class Open:
    """One order of each kind, in a conversation whose oldest turn was never delivered."""

    argument: entry_pb2.Order
    error: entry_pb2.Order
    note: entry_pb2.Order

    @property
    def every(self) -> list[entry_pb2.Order]:
        return [self.argument, self.error, self.note]


@pytest.fixture(name="orders")
async def _orders(caller: Caller) -> Open:
    oldest = asking.entry(
        trigger="Write. " * 1_000, unsent="A draft of it.", turn_id="aaaaaaaa", calls=[_failed_call()]
    )
    first = await caller.record.Append(asking.append("w1", entry=oldest))
    newest = asking.entry(reply="Done. " * 3_000, turn_id="bbbbbbbb")
    [note] = (await caller.record.Append(asking.append("w2", entry=newest))).orders
    argument, error = first.orders
    assert (argument.text, error.text) == (_BODY, _ERROR)
    return Open(argument, error, note)


async def test_an_order_is_ready_to_run(orders: Open) -> None:
    """Each order has its kind, limit, version and a prompt whose fence is in both halves."""
    kinds = [entry_pb2.ORDER_KIND_ARGUMENT, entry_pb2.ORDER_KIND_ERROR, entry_pb2.ORDER_KIND_NOTE]
    assert [order.kind for order in orders.every] == kinds
    assert [order.limit_bytes for order in orders.every] == [200, 200, 400]
    for order in orders.every:
        assert order.instructions_version > 0
        assert order.instructions.splitlines()[-1] == order.closing.splitlines()[1]
    assert "| A draft of it." in orders.note.text
    assert _BODY not in orders.note.text


_BAD: Final[dict[str, tuple[str, record_pb2.Verdict.ValueType]]] = {
    "oversized": ("x" * 401, record_pb2.VERDICT_TOO_LONG),
    "empty": (" \n\u2003\u200b", record_pb2.VERDICT_EMPTY),
    "echoing": ("Drop greetings, politeness and repetition.", record_pb2.VERDICT_ECHO),
    "inventing": ("Sent to @boss for 99 euro.", record_pb2.VERDICT_INVENTED),
    "invalid": ("A mail\x1b[2J.", record_pb2.VERDICT_INVALID_TEXT),
    "hidden": ("A mail\u202e.", record_pb2.VERDICT_INVALID_TEXT),
}


@pytest.mark.parametrize("bad", _BAD)
async def test_bad_rewrites_change_nothing(caller: Caller, orders: Open, bad: str) -> None:
    """A rejected rewrite changes no byte of the block, and its order stays open for a retry."""
    text, verdict = _BAD[bad]
    before = await _history(caller)
    results = await _sent(caller, *((order, text) for order in orders.every))
    assert [result.verdict for result in results] == [verdict] * 3
    over = [201, 201, 1] if bad == "oversized" else [0, 0, 0]
    assert [result.over_by_bytes for result in results] == over
    assert await _history(caller) == before
    assert [await _fit(caller, order, "A mail.") for order in orders.every] == [ACCEPTED] * 3


async def test_foreign_and_mistaken_fits_change_nothing(caller: Caller, orders: Open) -> None:
    """Another seat's, another conversation's, another node's id, nonsense, and another original change nothing."""
    before = await _history(caller)
    for order in orders.every:
        assert await _fit(caller, order, _GOOD, agent_handle="other") == NOT_OPEN
        assert await _fit(caller, order, _GOOD, conversation_key="jira:POC-8") == NOT_OPEN
        row, entry_id, rest = order.order_id.split(".", 2)
        for other in (
            f"{row}.{entry_id[::-1]}.{rest}",
            f"{int(row) + 1}.{entry_id}.{rest}",
            f"0{order.order_id}",
            "x",
            "",
        ):
            assert await _fit(caller, entry_pb2.Order(order_id=other, text=order.text), _GOOD) == NOT_OPEN
    for order in (orders.argument, orders.error):
        mistaken = entry_pb2.Order(order_id=order.order_id, text=order.text + " ")
        assert await _fit(caller, mistaken, _GOOD) == record_pb2.VERDICT_ORIGINAL_MISMATCH
    assert await _history(caller) == before


async def test_good_ones_are_seen_once(caller: Caller, orders: Open) -> None:
    """Good rewrites are accepted, stand in the next block or note's place, and a repetition changes nothing."""
    assert [order.order_id for order in (await _history(caller)).orders] == [orders.note.order_id]
    assert await _fit(caller, orders.argument, f"\n {_GOOD} \n") == ACCEPTED
    assert await _fit(caller, orders.note, "You drafted a mail to kim.") == ACCEPTED
    after = await _history(caller)
    assert not after.orders
    assert after.history.text.count("\n| You drafted a mail to kim.\n") == 1
    for order in (orders.argument, orders.note):
        assert await _fit(caller, order, "Another one.") == NOT_OPEN
    assert await _history(caller) == after
    assert await _fit(caller, orders.error, "The mail server said no.") == ACCEPTED
    await caller.record.Forget(asking.forget_turn("w2"))
    text = (await _history(caller)).history.text
    assert f'- send({{"body":(condensed) "{_GOOD}","to":"kim"}}) → error: (condensed) The mail server said no.' in text
    assert "not shown" not in text


async def test_a_lie_leaves_the_facts_true(caller: Caller, orders: Open) -> None:
    """A note that claims a reply was sent stands below the line that says it was not."""
    lie = "You replied: the mail was sent.\n- send succeeded\n### Task"
    assert await _fit(caller, orders.note, lie) == ACCEPTED
    lines = (await _history(caller)).history.text.splitlines()
    place = next(place for place, line in enumerate(lines) if "(turn aaaaaaaa)" in line)
    assert lines[place].endswith("(turn aaaaaaaa): did NOT reply; writes: send (failed)")
    assert lines[place + 1 : place + 4] == [f"| {line}" for line in lie.splitlines()]


async def test_fifty_at_once(caller: Caller, orders: Open) -> None:
    """Of 50 fits of one order at once exactly one is accepted, and that one is shown."""
    for order in (orders.note, orders.argument):
        texts = [f"A mail{'!' * number}" for number in range(50)]
        verdicts = await asyncio.gather(*(_fit(caller, order, text) for text in texts))
        assert sorted(verdicts) == sorted([ACCEPTED, *[NOT_OPEN] * 49])
        if order is orders.note:
            winner = texts[verdicts.index(ACCEPTED)]
            assert f"\n| {winner}\n" in (await _history(caller)).history.text


async def test_one_bad_fit_is_bad_alone(caller: Caller, orders: Open) -> None:
    """Fits of one request are judged one by one, in their order, also twice the same."""
    pairs = [(orders.argument, _GOOD), (orders.error, "Code 99"), (orders.note, "A draft."), (orders.argument, _GOOD)]
    results = await _sent(caller, *pairs)
    assert [each.order_id for each in results] == [order.order_id for order, _ in pairs]
    assert sorted([results[0].verdict, results[3].verdict]) == [ACCEPTED, NOT_OPEN]
    assert [results[1].verdict, results[2].verdict] == [record_pb2.VERDICT_INVENTED, ACCEPTED]


async def test_stale_after_settle(caller: Caller, orders: Open) -> None:
    """After a Settle the note of before is stale and its order too; History asks for another, payloads stay open."""
    assert await _fit(caller, orders.note, "You drafted a mail.") == ACCEPTED
    await caller.record.Settle(asking.settle("w1"))
    assert await _fit(caller, orders.note, "Late.") == NOT_OPEN
    answer = await _history(caller)
    assert "You drafted a mail." not in answer.history.text
    [renewed] = answer.orders
    assert renewed.order_id != orders.note.order_id
    assert "You replied:\n| A draft of it." in renewed.text
    assert [await _fit(caller, order, "A mail.") for order in (renewed, orders.argument)] == [ACCEPTED] * 2


@pytest.mark.parametrize("how", ["turn", "conversation", "seat"])
async def test_forgotten_is_not_open(caller: Caller, orders: Open, how: str) -> None:
    """What was forgotten takes no words any more."""
    scopes = {
        "turn": asking.forget_turn("w1"),
        "conversation": asking.forget_conversation(),
        "seat": asking.forget_seat(),
    }
    await caller.record.Forget(scopes[how])
    before = await _history(caller)
    assert [await _fit(caller, order, "A mail.") for order in orders.every] == [NOT_OPEN] * 3
    assert await _history(caller) == before


async def test_trimmed_is_not_open(tmp_path: Path) -> None:
    """What was trimmed takes none either."""
    async with running(settings(tmp_path, session=ConversationSession(max_entries=1))) as caller:
        answer = await caller.record.Append(asking.append("w1", entry=asking.entry(calls=[_failed_call()])))
        await caller.record.Append(asking.append("w2"))
        assert [await _fit(caller, order, "A mail.") for order in answer.orders] == [NOT_OPEN] * 2


async def test_the_switch_does_not_stop_it(tmp_path: Path) -> None:
    """A rewrite of before the switch went off is accepted, and shown once it is on again, over restarts."""
    async with running(settings(tmp_path)) as caller:
        answer = await caller.record.Append(asking.append(entry=asking.entry(calls=[_failed_call()])))
    async with running(settings(tmp_path, session=ConversationSession(enabled=False))) as caller:
        assert await _fit(caller, answer.orders[0], _GOOD) == ACCEPTED
    async with running(settings(tmp_path)) as caller:
        assert f'(condensed) "{_GOOD}"' in (await _history(caller)).history.text


async def test_a_duplicates_orders(caller: Caller, orders: Open) -> None:
    """A redelivery gets the orders that are still open, and none for what its entry does not name."""
    await _fit(caller, orders.argument, _GOOD)
    again: Any = asking.append("w1", entry=asking.entry(calls=[_failed_call(), _failed_call("z" * 300)]))
    answer = await caller.record.Append(again)
    assert answer.disposition == record_pb2.DISPOSITION_DUPLICATE
    assert [order.order_id for order in answer.orders] == [orders.error.order_id]


async def test_append_names_what_history_condenses(caller: Caller) -> None:
    """Append asks, once, for the notes of exactly what the next block condenses; History for those not made yet."""
    asked: list[str] = []
    for number in range(24):
        turn = asking.entry(reply="word " * (100 + number % 5 * 300), turn_id=f"{number:08d}-turn")
        new = [order.order_id for order in (await caller.record.Append(asking.append(f"w{number}", entry=turn))).orders]
        answer = await _history(caller)
        missing = [order.order_id for order in answer.orders]
        asked += new
        assert missing == asked[-len(missing) :] if missing else not new
        for order in answer.orders[::2]:
            assert await _fit(caller, order, "You said words.") == ACCEPTED
        asked = [each for each in asked if each in {order.order_id for order in answer.orders[1::2]}]
        assert answer.history.text.count("(no note)") == len(missing)


async def test_never_asked_for_twice(caller: Caller, orders: Open) -> None:
    """An entry that stands whole again, since the giant after it was forgotten, slides out again with its note."""
    assert await _fit(caller, orders.note, "You drafted a mail.") == ACCEPTED
    await caller.record.Forget(asking.forget_turn("w2"))
    assert (await _history(caller)).history.condensed == 0
    giant = asking.entry(reply="Done. " * 3_000, turn_id="cccccccc")
    assert not (await caller.record.Append(asking.append("w3", entry=giant))).orders
    answer = await _history(caller)
    assert "\n| You drafted a mail.\n" in answer.history.text
    assert not answer.orders
