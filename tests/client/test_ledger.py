"""The client against a scripted sidecar on a real socket: what an engine gets, in both shells."""

import asyncio
import hashlib
import logging
from datetime import UTC, datetime
from typing import Any

import grpc.aio
import pytest
from turnledger import (
    CallKind,
    Composer,
    ConversationScope,
    Deadlines,
    Disposition,
    Erasure,
    Forgotten,
    HistoryState,
    LedgerError,
    Phase,
    Reply,
    RunEnd,
    SeatScope,
    SettleOutcome,
    SkipReason,
    TextRepaired,
    TurnEnded,
    TurnScope,
    Unsent,
)
from turnledger.v1 import entry_pb2, record_pb2, render_pb2

from tests.client.scripted_sidecar import (
    AFTER,
    ASK,
    BEFORE,
    BLOCK,
    KEYS,
    Open,
    Script,
    composes,
    fails,
    history,
    recorded,
    says,
    serving,
)


async def test_a_turn_reads_once_and_its_rounds_hold_the_frozen_block(opened: Open, target: str) -> None:
    """However many rounds a turn has, the history is read once and each EXECUTE message holds the same bytes."""
    script = Script()
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS, hard_limit_bytes=9000)
        messages = [await turn.user_message(**ASK) for _ in range(3)]
        review = await turn.user_message(phase=Phase.REVIEW, task="Do it.")
        stats = ledger.stats
    assert messages == [AFTER] * 3
    assert review == BEFORE
    (asked,) = script.seen["History"]
    assert (asked.agent_handle, asked.conversation_key, asked.work_key) == ("support", "jira:POC-7", KEYS["work_key"])
    assert asked.hard_limit_bytes == 9000
    assert turn.history.text == BLOCK
    assert turn.history.state is HistoryState.PRESENT
    assert turn.read_failure is None
    assert (stats.reads, stats.composed_by_sidecar, stats.composed_locally) == (1, 4, 0)


async def test_rounds_are_counted_by_phase_unless_their_number_is_given(opened: Open, target: str) -> None:
    """Each phase counts from 1; a number that is given is taken, and counted on from."""
    script = Script()
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        for phase, iteration in [
            ("execute", None),
            ("review", None),
            ("execute", None),
            ("execute", 7),
            ("execute", None),
        ]:
            await turn.user_message(phase=phase, task="t", iteration=iteration)
    numbers = [(asked.phase, asked.iteration) for asked in script.seen["UserMessage"]]
    assert numbers == [(1, 1), (2, 1), (1, 2), (1, 7), (1, 8)]


async def test_a_message_is_asked_for_with_every_part(opened: Open, target: str) -> None:
    """UserMessage carries keys, parts, sizes and the history, which no other phase than EXECUTE sends."""
    script = Script()
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        await turn.user_message(**ASK, context="C", prior_work="P", system_bytes=5, tool_bytes=0)
        await turn.user_message(phase=Phase.OTHER, task="t")
    first, other = script.seen["UserMessage"]
    assert first == render_pb2.UserMessageRequest(
        agent_handle="support",
        conversation_key="jira:POC-7",
        turn_id="run-00000001",
        phase=render_pb2.PHASE_EXECUTE,
        iteration=1,
        context="C",
        history=history(),
        task="Do it.",
        prior_work="P",
        system_bytes=5,
        tool_bytes=0,
    )
    assert not other.HasField("history")
    assert not other.HasField("system_bytes")


@pytest.mark.parametrize("state", [render_pb2.HISTORY_STATE_EMPTY, render_pb2.HISTORY_STATE_DISABLED])
async def test_nothing_there_is_told_from_not_readable(opened: Open, target: str, state: Any) -> None:
    """An empty or disabled ledger is an answer: a history without text, and no read failure."""
    script = Script(History=says(render_pb2.HistoryResponse(history=history("", state))))
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        message = await turn.user_message(**ASK)
        stats = ledger.stats
    assert turn.history.text == ""
    assert turn.read_failure is None
    assert message == BEFORE
    assert (stats.reads, stats.read_failures) == (1, 0)


async def test_a_redelivery_is_known_at_the_beginning(opened: Open, target: str) -> None:
    """What the sidecar says about the work key reaches the engine as `already_recorded`."""
    answer = render_pb2.HistoryResponse(history=history(), already_recorded=True)
    async with serving(Script(History=says(answer)), target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
    assert turn.already_recorded is True


async def test_complete_sends_the_turn_as_it_was_given(opened: Open, target: str) -> None:
    """Each field and call of the turn stands in Append, unknown kinds as writes; the receipt says what became of it."""
    script = Script(Append=says(recorded(4)))
    ended = datetime(2026, 2, 3, 4, 5, 6, 789000, tzinfo=UTC)
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        turn.called("send_mail", '{"id": 9007199254740993}', sensitive=["token"])
        turn.called("look", "{}", kind=CallKind.READ, error="")
        turn.called("odd", "{}", kind="no such kind")
        receipt = await turn.complete(
            Unsent("bye\r\n"),
            trigger="T",
            intent="I",
            decision="blocked",
            completed_work="W",
            blocked_on="B",
            completed_at=ended,
        )
        stats = ledger.stats
    expected = record_pb2.AppendRequest(
        agent_handle="support",
        conversation_key="jira:POC-7",
        work_key=KEYS["work_key"],
        run_end=record_pb2.RUN_END_COMPLETED,
        entry=entry_pb2.Entry(
            turn_id="run-00000001",
            trigger="T",
            intent="I",
            calls=[
                entry_pb2.ToolCall(name="send_mail", arguments='{"id": 9007199254740993}', kind=1, sensitive=["token"]),  # type: ignore[arg-type]
                entry_pb2.ToolCall(name="look", arguments="{}", kind=2, failed=True),  # type: ignore[arg-type]
                entry_pb2.ToolCall(name="odd", arguments="{}", kind=1),  # type: ignore[arg-type]
            ],
            unsent="bye\r\n",
            completed_work="W",
            blocked_on="B",
            decision="blocked",
        ),
    )
    expected.entry.completed_at.FromDatetime(ended)
    assert script.seen["Append"] == [expected]
    assert (receipt.disposition, receipt.entry_id, receipt.ordinal) == (Disposition.RECORDED, "entry-4", 4)
    assert receipt.in_ledger
    assert receipt.failure is None
    assert stats.recorded == 1


@pytest.mark.parametrize("outcome", [Reply(""), Unsent("")])
async def test_an_empty_text_is_still_a_choice(opened: Open, target: str, outcome: Reply | Unsent) -> None:
    """Whether anybody received the text is said even when the text is empty."""
    script = Script()
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        await turn.complete(outcome, trigger="T")
    (asked,) = script.seen["Append"]
    assert asked.entry.WhichOneof("outcome") == type(outcome).__name__.lower()


async def test_duplicates_and_skips_are_receipts(opened: Open, target: str) -> None:
    """A duplicate carries the first entry's id, a skip its reason; both are counted and neither is a failure."""
    duplicate = record_pb2.AppendResponse(disposition=record_pb2.DISPOSITION_DUPLICATE, entry_id="entry-1", ordinal=1)
    skipped = record_pb2.AppendResponse(
        disposition=record_pb2.DISPOSITION_SKIPPED, skip_reason=record_pb2.SKIP_REASON_FORGOTTEN
    )
    newer = record_pb2.AppendResponse(disposition=record_pb2.DISPOSITION_SKIPPED, skip_reason=99)  # type: ignore[arg-type]
    async with serving(Script(Append=[says(duplicate), says(skipped), says(newer)]), target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        first, second, third = [await turn.complete(Reply("r"), trigger="T") for _ in range(3)]
        stats = ledger.stats
    assert (first.disposition, first.entry_id, first.in_ledger) == (Disposition.DUPLICATE, "entry-1", True)
    assert (second.disposition, second.skip_reason, second.in_ledger) == (
        Disposition.SKIPPED,
        SkipReason.FORGOTTEN,
        False,
    )
    assert (third.disposition, third.skip_reason, third.failure) == (Disposition.SKIPPED, None, None)
    assert (stats.duplicates, stats.skipped, stats.write_failures) == (1, 2, 0)


async def test_a_run_that_did_not_complete_says_how_it_ended(opened: Open, target: str) -> None:
    """Suspended and crashed runs send no material, are tried once, and are no lost write if nobody hears."""
    skipped = record_pb2.AppendResponse(
        disposition=record_pb2.DISPOSITION_SKIPPED, skip_reason=record_pb2.SKIP_REASON_RUN_SUSPENDED
    )
    events: list[Any] = []
    script = Script(Append=[says(skipped), fails("UNAVAILABLE", "STORE_UNAVAILABLE", retry_seconds=0.01)])
    async with serving(script, target), opened(target, on_event=events.append) as ledger:
        turn = await ledger.begin(**KEYS)
        turn.called("x", "{}")
        suspended = await turn.suspended()
        crashed = await turn.crashed()
        stats = ledger.stats
    first, second = script.seen["Append"]
    assert (first.run_end, second.run_end) == (record_pb2.RUN_END_SUSPENDED, record_pb2.RUN_END_CRASHED)
    assert not first.HasField("entry")
    assert suspended.skip_reason is SkipReason.RUN_SUSPENDED
    assert crashed.failure.reason == "STORE_UNAVAILABLE"
    assert (stats.write_failures, stats.run_end_failures, stats.retries) == (0, 1, 0)
    assert [event.run_end for event in events if isinstance(event, TurnEnded)] == [RunEnd.SUSPENDED, RunEnd.CRASHED]


async def test_a_saved_turn_goes_on_elsewhere(opened: Open, target: str, socket: str) -> None:
    """A turn resumed on another sidecar, whose history differs, has its own frozen bytes, rounds and calls."""
    elsewhere = Script(History=says(render_pb2.HistoryResponse(history=history("## Earlier\n\nother"))))
    async with serving(Script(), target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        await turn.user_message(**ASK)
        turn.called("send_mail", '{"to": "a", "password": "hunter2"}', sensitive=("password",))
        saved = turn.save()
    assert "hunter2" not in saved
    assert saved.isascii()
    other = f"unix:{socket}2"
    async with serving(elsewhere, other), opened(other) as ledger:
        resumed = ledger.resume(saved)
        assert await resumed.user_message(**ASK) == AFTER
        await resumed.complete(Reply("r"), trigger="T")
    assert resumed.history == turn.history
    assert resumed.keys == turn.keys
    assert elsewhere.seen["History"] == []
    assert elsewhere.seen["UserMessage"][0].iteration == 2
    (call,) = elsewhere.seen["Append"][0].entry.calls
    assert call.arguments == '{"to": "a", "password": "(withheld)"}'


async def test_settle_and_forget_say_what_became_of_them(opened: Open, target: str) -> None:
    """Settle answers with its outcome; forget sends exactly the scope it was given and answers with its count."""
    script = Script()
    scopes = [TurnScope("s", "c", "w"), ConversationScope("s", "c"), SeatScope("s")]
    async with serving(script, target), opened(target) as ledger:
        settlement = await ledger.settle(agent_handle="s", conversation_key="c", work_key="w")
        answers = [await ledger.forget(scope) for scope in scopes]
        stats = ledger.stats
    assert (settlement.outcome, settlement.entry_id) == (SettleOutcome.SETTLED, "entry-1")
    assert script.seen["Settle"] == [record_pb2.SettleRequest(agent_handle="s", conversation_key="c", work_key="w")]
    assert answers == [Forgotten(3, Erasure.COMPLETE)] * 3
    assert script.seen["Forget"] == [
        record_pb2.ForgetRequest(turn=record_pb2.TurnScope(agent_handle="s", conversation_key="c", work_key="w")),
        record_pb2.ForgetRequest(conversation=record_pb2.ConversationScope(agent_handle="s", conversation_key="c")),
        record_pb2.ForgetRequest(seat=record_pb2.SeatScope(agent_handle="s")),
    ]
    assert (stats.settled, stats.forgotten) == (1, 9)


async def test_settle_swallows_and_forget_raises(opened: Open, target: str) -> None:
    """A settle that fails is a value, a forget that fails is an exception that carries the same kind of failure."""
    refused = fails("DATA_LOSS", "STORE_CORRUPT")
    async with serving(Script(Settle=refused, Forget=refused), target), opened(target) as ledger:
        settlement = await ledger.settle(agent_handle="s", conversation_key="c", work_key="w")
        with pytest.raises(LedgerError, match="DATA_LOSS STORE_CORRUPT") as raised:
            await ledger.forget(SeatScope("s"))
        stats = ledger.stats
    assert settlement.failure.reason == "STORE_CORRUPT"
    assert raised.value.failure.reason == "STORE_CORRUPT"
    assert (stats.settle_failures, stats.forget_failures) == (1, 1)


async def test_lone_surrogates_are_replaced_and_reported_everywhere(
    opened: Open, target: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each text field, keys and argument text too, arrives with U+FFFD; fields and count are told, content never is."""
    events: list[Any] = []
    script = Script()
    bad = {name: f"{value}\ud800" for name, value in KEYS.items()}
    async with serving(script, target), opened(target, on_event=events.append) as ledger:
        turn = await ledger.begin(**bad)
        message = await turn.user_message(
            phase=Phase.EXECUTE, task="secret\udfff", context="\ud800", prior_work="\ud800"
        )
        turn.called("n\ud800", '{"a": "\ud800", "b": "\\ud800"}', error="e\ud800", sensitive=["s\ud800"])
        await turn.complete(
            Reply("r\ud800"), trigger="t\ud800", intent="i\ud800", completed_work="w\ud800", blocked_on="b\ud800"
        )
        await ledger.settle(**{name: value for name, value in bad.items() if name != "turn_id"})
        await ledger.forget(TurnScope("s\ud800", "c\ud800", "w\ud800"))
        stats = ledger.stats
    assert message == f"\ufffd\n\n{BLOCK}\n\n## Task\n\nsecret\ufffd\n\n## Already done earlier in this turn\n\n\ufffd"
    (appended,) = script.seen["Append"]
    entry = appended.entry
    (call,) = entry.calls
    assert (appended.agent_handle, appended.work_key) == ("support\ufffd", KEYS["work_key"] + "\ufffd")
    assert (entry.reply, entry.trigger, entry.intent) == ("r\ufffd", "t\ufffd", "i\ufffd")
    assert (call.name, call.error, list(call.sensitive)) == ("n\ufffd", "e\ufffd", ["s\ufffd"])
    assert call.arguments == '{"a": "\ufffd", "b": "\\ud800"}'
    assert script.seen["Forget"][0].turn.work_key == "w\ufffd"
    repairs = [event for event in events if isinstance(event, TextRepaired)]
    assert [event.fields for event in repairs] == [
        ("agent_handle", "conversation_key", "turn_id", "work_key"),
        ("context", "task", "prior_work"),
        ("entry.calls[0].name", "entry.calls[0].arguments", "entry.calls[0].error", "entry.calls[0].sensitive"),
        ("entry.trigger", "entry.intent", "entry.reply", "entry.completed_work", "entry.blocked_on"),
        ("agent_handle", "conversation_key", "work_key"),
        ("agent_handle", "conversation_key", "work_key"),
    ]
    assert stats.repaired == sum(event.replaced for event in repairs) == 22
    assert "secret" not in caplog.text
    assert "entry.calls[0].arguments" in caplog.text


async def test_a_hook_that_raises_breaks_nothing(opened: Open, target: str) -> None:
    """The engine's hook may fail on every event: the turn runs, and the failures are counted."""

    def hook(_event: Any) -> None:
        raise RuntimeError("metrics are down")

    async with serving(Script(), target), opened(target, on_event=hook) as ledger:
        turn = await ledger.begin(**KEYS)
        message = await turn.user_message(**ASK)
        receipt = await turn.complete(Reply("r"), trigger="T")
        stats = ledger.stats
    assert message == AFTER
    assert receipt.in_ledger
    assert stats.hook_failures == 3


async def test_many_turns_at_once(opened: Open, target: str) -> None:
    """A hundred turns side by side on one ledger each get their own rounds and receipt, and every count is right."""

    async def play(ledger: Any, number: int) -> int:
        turn = await ledger.begin(**{**KEYS, "work_key": f"w{number}"})
        await asyncio.gather(*(turn.user_message(**ASK) for _ in range(3)))
        turn.called("x", f'{{"n":{number}}}')
        receipt = await turn.complete(Reply("r"), trigger=f"T{number}")
        return int(receipt.ordinal)

    async def append(request: Any, _context: Any) -> Any:
        number = int(request.work_key[1:])
        assert request.entry.calls[0].arguments == f'{{"n":{number}}}'
        return record_pb2.AppendResponse(disposition=record_pb2.DISPOSITION_RECORDED, entry_id="e", ordinal=number + 1)

    script = Script(Append=append)
    patient = Deadlines(begin=30, user_message=30, complete=30)
    async with serving(script, target), opened(target, deadlines=patient) as ledger:
        ordinals = await asyncio.gather(*(play(ledger, number) for number in range(100)))
        stats = ledger.stats
    assert ordinals == list(range(1, 101))
    assert (stats.reads, stats.recorded) == (100, 100)
    assert stats.composed_by_sidecar == 300
    assert sorted(asked.iteration for asked in script.seen["UserMessage"]) == sorted([1, 2, 3] * 100)


async def test_loopback_tcp_is_the_equal_other_choice(opened: Open) -> None:
    """The same turn over host:port, also where the environment names a proxy."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Script(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("http_proxy", "http://127.0.0.1:1")
        environment.setenv("grpc_proxy", "http://127.0.0.1:1")
        async with opened(f"127.0.0.1:{port}") as ledger:
            turn = await ledger.begin(**KEYS)
            receipt = await turn.complete(Reply("r"), trigger="T")
    await server.stop(0)
    assert turn.history.text == BLOCK
    assert receipt.in_ledger


async def test_a_history_of_any_size_comes_through(opened: Open, target: str) -> None:
    """A block over the message limit is read whole; its rounds are composed by the client, as too large to ask for."""
    text = "## Earlier in this conversation\n\n" + "x" * (33 * 1024 * 1024)
    events: list[Any] = []
    script = Script(History=says(render_pb2.HistoryResponse(history=history(text))))
    async with serving(script, target), opened(target, on_event=events.append) as ledger:
        turn = await ledger.begin(**KEYS)
        message = await turn.user_message(**ASK)
        stats = ledger.stats
    assert hashlib.sha256(turn.history.text.encode()).hexdigest() == turn.history.digest
    assert message == f"{text}\n\n## Task\n\nDo it."
    assert script.seen["UserMessage"] == []
    assert events[-1].composer is Composer.CLIENT
    assert (stats.composed_locally, stats.too_large) == (1, 1)


async def test_an_entry_over_the_limit_is_not_sent(opened: Open, target: str, caplog: pytest.LogCaptureFixture) -> None:
    """A turn over 32 MiB is found before sending, and said in receipt, counts and log."""
    script = Script()
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        with caplog.at_level(logging.WARNING, "turnledger"):
            receipt = await turn.complete(Reply("x" * (32 * 1024 * 1024)), trigger="T")
        just_under = await turn.complete(Reply("x" * (32 * 1024 * 1024 - 1024)), trigger="T")
        stats = ledger.stats
    assert (receipt.failure.reason, receipt.attempts) == ("TOO_LARGE", 1)
    assert "TOO_LARGE" in caplog.text
    assert just_under.in_ledger
    assert len(script.seen["Append"]) == 1
    assert (stats.too_large, stats.write_failures, stats.recorded) == (1, 1, 1)


async def test_the_events_tell_a_turn(opened: Open, target: str) -> None:
    """An engine sees each step of a turn as one event with sizes and times, in order."""
    events: list[Any] = []
    script = Script(UserMessage=[composes, fails("INTERNAL")])
    async with serving(script, target), opened(target, on_event=events.append) as ledger:
        turn = await ledger.begin(**KEYS)
        await turn.user_message(**ASK, context="é")
        await turn.user_message(**ASK)
        await turn.complete(Reply("r"), trigger="T")
    read, first, second, end = events
    assert (read.state, read.bytes, read.failure) == (HistoryState.PRESENT, len(BLOCK.encode()), None)
    assert (first.composer, first.failure, first.iteration) == (Composer.SIDECAR, None, 1)
    assert (second.composer, second.failure.reason, second.iteration) == (Composer.CLIENT, "INTERNAL", 2)
    assert (first.size.context_bytes, first.size.task_bytes, first.size.history_bytes) == (2, 6, len(BLOCK.encode()))
    assert first.size.user_bytes == len(f"é\n\n{AFTER}".encode())
    assert end.receipt.disposition is Disposition.RECORDED
    assert all(event.seconds > 0 for event in events)
