"""The client against a sidecar that is dead, hung, slow, stopped, vanishing, refusing or talking nonsense."""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from turnledger import BlockingLedger, Deadlines, Disposition, Failure, Ledger, LedgerError, Reply, SeatScope, Violation
from turnledger.v1 import record_pb2, render_pb2

from tests.client.scripted_sidecar import (
    AFTER,
    ASK,
    BEFORE,
    BLOCK,
    KEYS,
    Behaviour,
    Open,
    Script,
    babbling_listener,
    composes,
    fails,
    hangs,
    history,
    recorded,
    says,
    serving,
    silent_listener,
    slowly,
)

QUICK = Deadlines(begin=0.4, user_message=0.2, complete=0.8, run_end=0.2, settle=0.5, forget=0.5)

#: What a busy machine may add to a measured deadline, in seconds.
SLACK = 0.6


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """The block takes no longer than `seconds`, and what a busy machine adds."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds + SLACK


async def plays_without_history(ledger: Any) -> None:
    """One turn on a sidecar that gives nothing: the prompt of before the ledger, and a receipt, each in its time."""
    with within(QUICK.begin):
        turn = await ledger.begin(**KEYS)
    assert turn.history is None
    assert turn.read_failure is not None
    assert turn.already_recorded is False
    with within(QUICK.user_message):
        assert await turn.user_message(**ASK) == BEFORE
    with within(QUICK.complete):
        receipt = await turn.complete(Reply("r"), trigger="T")
    assert receipt.failure is not None
    assert receipt.disposition is None
    assert not receipt.in_ledger
    with within(QUICK.run_end):
        assert (await turn.crashed()).failure is not None
    with within(QUICK.settle):
        assert (await ledger.settle(agent_handle="s", conversation_key="c", work_key="w")).failure is not None
    with within(QUICK.forget), pytest.raises(LedgerError):
        await ledger.forget(SeatScope("s"))
    stats = ledger.stats
    assert (stats.read_failures, stats.composed_locally, stats.write_failures) == (1, 1, 1)
    assert (stats.run_end_failures, stats.settle_failures, stats.forget_failures) == (1, 1, 1)
    assert (stats.reads, stats.recorded, stats.composed_by_sidecar) == (0, 0, 0)


async def test_a_missing_socket(opened: Open, target: str) -> None:
    """Without a sidecar a turn runs as before the ledger, and nothing outlasts its deadline."""
    async with opened(target, deadlines=QUICK) as ledger:
        await plays_without_history(ledger)


async def test_a_missing_socket_costs_the_start_of_a_turn_nothing(opened: Open, target: str) -> None:
    """Where nobody listens, begin does not wait its deadline out, and says UNREACHABLE."""
    async with opened(target) as ledger:
        with within(0):
            turn = await ledger.begin(**KEYS)
    assert turn.read_failure.reason == "UNREACHABLE"


async def test_a_refused_port(opened: Open) -> None:
    """Over TCP as over the socket: a port where nobody listens leaves the turn as before the ledger."""
    async with opened("127.0.0.1:1", deadlines=QUICK) as ledger:
        await plays_without_history(ledger)


async def test_a_socket_that_accepts_and_says_nothing(opened: Open, socket: str, target: str) -> None:
    """A listener that never speaks cannot hold a turn past its deadlines."""
    async with silent_listener(socket), opened(target, deadlines=QUICK) as ledger:
        await plays_without_history(ledger)


async def test_a_socket_that_talks_nonsense(opened: Open, socket: str, target: str) -> None:
    """A listener of another protocol is a failure like any other."""
    async with babbling_listener(socket), opened(target, deadlines=QUICK) as ledger:
        await plays_without_history(ledger)


async def test_a_hung_sidecar(opened: Open, target: str) -> None:
    """Calls that are taken and never answered end in their deadlines."""
    hung = Script(History=hangs, UserMessage=hangs, Append=hangs, Settle=hangs, Forget=hangs)
    async with serving(hung, target), opened(target, deadlines=QUICK) as ledger:
        await plays_without_history(ledger)


GARBAGE = [b"\xff\xff\xff\xff", b"", b"\x0a\x05hello"]


@pytest.mark.parametrize("garbage", GARBAGE)
async def test_answers_that_the_contract_does_not_allow(opened: Open, target: str, garbage: bytes) -> None:
    """Bytes that do not parse, or say nothing, are BAD_ANSWER everywhere, and never an empty history."""
    nonsense = says(garbage)
    script = Script(History=nonsense, UserMessage=nonsense, Append=nonsense, Settle=nonsense, Forget=nonsense)
    async with serving(script, target), opened(target, deadlines=QUICK) as ledger:
        await plays_without_history(ledger)
        turn = await ledger.begin(**KEYS)
    assert turn.read_failure.reason == "BAD_ANSWER"


def damaged_histories() -> list[render_pb2.History]:
    """Histories whose state, text and digest do not go together, one for each way."""
    good = history()
    wrong_digest, textless, unknown = render_pb2.History(), render_pb2.History(), render_pb2.History()
    for damaged in (wrong_digest, unknown):
        damaged.CopyFrom(good)
    wrong_digest.text += "x"
    unknown.state = 77  # type: ignore[assignment]
    textless.CopyFrom(history(""))
    with_text = history(BLOCK, render_pb2.HISTORY_STATE_EMPTY)
    return [wrong_digest, textless, unknown, with_text]


@pytest.mark.parametrize("damaged", damaged_histories(), ids=["digest", "no text", "state", "text"])
async def test_a_history_at_odds_with_itself_is_not_used(
    opened: Open, target: str, damaged: render_pb2.History
) -> None:
    """Text without its digest, presence without text, absence with text, an unknown state: not readable."""
    script = Script(History=says(render_pb2.HistoryResponse(history=damaged)))
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        assert await turn.user_message(**ASK) == BEFORE
    assert turn.read_failure.reason == "BAD_ANSWER"


@pytest.mark.parametrize(
    "answer",
    [
        record_pb2.AppendResponse(disposition=record_pb2.DISPOSITION_RECORDED),
        record_pb2.AppendResponse(disposition=record_pb2.DISPOSITION_SKIPPED, entry_id="entry-1"),
    ],
    ids=["recorded without an entry", "skipped with one"],
)
async def test_a_receipt_at_odds_with_itself_is_none(
    opened: Open, target: str, answer: record_pb2.AppendResponse
) -> None:
    """A disposition that does not go with the entry's id is BAD_ANSWER: nobody is told that a turn is on disk."""
    async with serving(Script(Append=says(answer)), target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        receipt = await turn.complete(Reply("r"), trigger="T")
    assert receipt.failure.reason == "BAD_ANSWER"
    assert not receipt.in_ledger


async def test_a_message_of_other_bytes_is_not_used(opened: Open, target: str) -> None:
    """The prompt is the normative composition, whatever a sidecar of another mind answers."""
    script = Script(UserMessage=says(render_pb2.UserMessageResponse(text=f"{AFTER} and obey")))
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        assert await turn.user_message(**ASK) == AFTER
        assert ledger.stats.composed_locally == 1


@pytest.mark.parametrize("code", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED"])
async def test_a_message_is_never_asked_for_twice(opened: Open, target: str, code: str) -> None:
    """One round, one UserMessage, however it fails; the frozen block is in the message all the same."""
    script = Script(UserMessage=fails(code, "OVERLOADED", retry_seconds=0.001))
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        assert await turn.user_message(**ASK) == AFTER
    assert len(script.seen["UserMessage"]) == 1


#: The table of the contract's errors: status, reason, RetryInfo, and whether a write may be tried again.
TABLE = [
    ("INVALID_ARGUMENT", "", None, False),
    ("RESOURCE_EXHAUSTED", "TOO_LARGE", None, False),
    ("UNAVAILABLE", "STORE_UNAVAILABLE", 0.02, True),
    ("RESOURCE_EXHAUSTED", "STORE_FULL", None, False),
    ("UNAVAILABLE", "STORE_IO", None, True),
    ("DATA_LOSS", "STORE_CORRUPT", None, False),
    ("FAILED_PRECONDITION", "STORE_NEWER", None, False),
    ("FAILED_PRECONDITION", "CONFIG_INVALID", None, False),
    ("RESOURCE_EXHAUSTED", "OVERLOADED", 0.02, True),
    ("DEADLINE_EXCEEDED", "", None, True),
    ("INTERNAL", "", None, False),
    ("RESOURCE_EXHAUSTED", "", None, False),
    ("UNIMPLEMENTED", "", None, False),
    ("CANCELLED", "", None, False),
]


@pytest.mark.parametrize(("code", "reason", "retry_seconds", "again"), TABLE)
async def test_each_row_of_the_table(
    opened: Open, target: str, code: str, reason: str, retry_seconds: float | None, *, again: bool
) -> None:
    """A read fails open with the row's own status and reason; a write is tried again only where the row says so."""
    row = fails(code, reason, retry_seconds=retry_seconds)
    script = Script(History=row, Append=[row, row, says(recorded())])
    async with serving(script, target), opened(target, deadlines=Deadlines(begin=0.3)) as ledger:
        turn = await ledger.begin(**KEYS)
        message = await turn.user_message(**ASK)
        receipt = await turn.complete(Reply("r"), trigger="T")
        stats = ledger.stats
    assert (turn.read_failure.code, turn.read_failure.reason) == (code, reason or code)
    assert message == BEFORE
    assert len(script.seen["Append"]) == receipt.attempts == (3 if again else 1)
    assert (receipt.disposition is Disposition.RECORDED) is again
    assert (stats.recorded, stats.write_failures) == ((1, 0) if again else (0, 1))
    if not again:
        assert (receipt.failure.code, receipt.failure.reason) == (code, reason or code)
        assert len(script.seen["History"]) == 1


async def test_refused_fields_are_named(opened: Open, target: str, caplog: pytest.LogCaptureFixture) -> None:
    """The violations of INVALID_ARGUMENT reach the engine, and their fields, not their texts, the log."""
    refused = fails("INVALID_ARGUMENT", "INVALID", fields={"entry.decision": "[a-z_]{1,32}, secret"})
    async with serving(Script(Append=refused), target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        receipt = await turn.complete(Reply("r"), trigger="T", decision="No")
    assert receipt.failure.violations == (Violation("entry.decision", "[a-z_]{1,32}, secret"),)
    assert "entry.decision" in caplog.text
    assert "secret" not in caplog.text
    assert "a fixed message" not in caplog.text


async def test_reasons_of_another_domain_are_not_believed(opened: Open, target: str) -> None:
    """An ErrorInfo of somebody else allows no retry."""
    script = Script(Append=fails("RESOURCE_EXHAUSTED", "OVERLOADED", domain="example.com"))
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        receipt = await turn.complete(Reply("r"), trigger="T")
    assert (receipt.failure.reason, receipt.attempts) == ("RESOURCE_EXHAUSTED", 1)


async def test_the_sidecars_own_time_is_waited_for(opened: Open, target: str) -> None:
    """RetryInfo is a floor of the wait, and one beyond the deadline ends the tries at once."""
    soon, late = (fails("UNAVAILABLE", "STORE_UNAVAILABLE", retry_seconds=seconds) for seconds in (0.4, 60))
    script = Script(Append=[soon, says(recorded()), late])
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        began = time.monotonic()
        assert (await turn.complete(Reply("r"), trigger="T")).in_ledger
        assert time.monotonic() - began >= 0.4
        with within(0):
            receipt = await turn.complete(Reply("r"), trigger="T")
    assert receipt.failure == Failure("UNAVAILABLE", "STORE_UNAVAILABLE", "a fixed message", 60.0)


async def test_a_shed_read_is_tried_again_within_its_deadline(opened: Open, target: str) -> None:
    """A sidecar that is starting or busy for a moment does not cost a turn its history."""
    busy = fails("RESOURCE_EXHAUSTED", "OVERLOADED", retry_seconds=0.05)
    script = Script(History=[busy, says(render_pb2.HistoryResponse(history=history()))])
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
    assert turn.history.text == BLOCK
    assert len(script.seen["History"]) == 2


async def test_a_lost_answer_is_asked_for_again(opened: Open, target: str) -> None:
    """An Append whose connection breaks before the answer is sent again, and the duplicate is a success."""
    first = asyncio.Event()

    async def vanish(_request: Any, _context: Any) -> Any:
        first.set()
        await asyncio.Event().wait()

    duplicate = record_pb2.AppendResponse(disposition=record_pb2.DISPOSITION_DUPLICATE, entry_id="entry-1", ordinal=1)
    async with opened(target) as ledger:
        process = await sidecar_process(target)
        turn = await ledger.begin(**KEYS)
        process.kill()
        await process.wait()
        writing = asyncio.create_task(turn.complete(Reply("r"), trigger="T"))
        async with serving(Script(Append=vanish), target) as server:
            await asyncio.wait_for(first.wait(), 5)
            await server.stop(0)
        async with serving(Script(Append=says(duplicate)), target):
            receipt = await asyncio.wait_for(writing, 9)
    assert (receipt.disposition, receipt.entry_id) == (Disposition.DUPLICATE, "entry-1")
    assert receipt.attempts > 1


async def sidecar_process(target: str) -> asyncio.subprocess.Process:
    """A sidecar in a process of its own, listening."""
    root = Path(__file__).parents[2]
    search = os.pathsep.join([str(root), *(entry for entry in sys.path if entry)])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.client.stopped_sidecar",
        target,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": search},
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


@asynccontextmanager
async def stoppable(target: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """As `sidecar_process`, killed at the end."""
    process = await sidecar_process(target)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_stopped_process_holds_nobody(opened: Open, target: str) -> None:
    """A sidecar that is SIGSTOPped costs deadlines, not turns; the block stays; continued, it is used again."""
    async with stoppable(target) as process, opened(target, deadlines=QUICK) as ledger:
        turn = await ledger.begin(**KEYS)
        assert await turn.user_message(**ASK) == AFTER
        process.send_signal(signal.SIGSTOP)
        with within(QUICK.user_message):
            assert await turn.user_message(**ASK) == AFTER
        with within(QUICK.begin):
            other = await ledger.begin(**KEYS)
        assert other.read_failure.reason == "DEADLINE_EXCEEDED"
        with within(QUICK.complete):
            assert (await turn.complete(Reply("r"), trigger="T")).failure.reason == "DEADLINE_EXCEEDED"
        process.send_signal(signal.SIGCONT)
        assert (await turn.complete(Reply("r"), trigger="T")).in_ledger
        assert (await ledger.begin(**KEYS)).history.text == BLOCK


async def test_a_killed_process_mid_call_is_an_unreachable_one(opened: Open, target: str) -> None:
    """A sidecar that is SIGKILLed under a call fails the call at once, not at its deadline."""
    async with stoppable(target) as process, opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        process.send_signal(signal.SIGSTOP)
        reading = asyncio.create_task(ledger.begin(**KEYS))
        await asyncio.sleep(0.2)
        with within(0.5):
            process.kill()
            other = await reading
    assert turn.history is not None
    assert other.read_failure.reason == "UNREACHABLE"


async def test_thirty_rounds_on_a_hung_sidecar_do_not_cost_thirty_deadlines(
    opened: Open, target: str, caplog: pytest.LogCaptureFixture
) -> None:
    """After one full wait the others are brief, one warning is logged, and an answer brings full patience back."""
    mood: list[Behaviour] = [hangs]

    async def moody(request: Any, context: Any) -> Any:
        return await mood[0](request, context)

    script = Script(UserMessage=moody)
    async with serving(script, target), opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        with caplog.at_level(logging.WARNING, "turnledger"), within(0.5 + 29 * 0.06):
            for _ in range(30):
                assert await turn.user_message(**ASK) == AFTER
        assert ledger.stats.composed_locally == 30
        mood[0] = composes
        for _ in range(20):
            assert await turn.user_message(**ASK) == AFTER
            if ledger.stats.composed_by_sidecar:
                break
        mood[0] = slowly(composes, 0.25)
        assert await turn.user_message(**ASK) == AFTER
        assert ledger.stats.composed_by_sidecar == 2
    assert len([record for record in caplog.records if record.name == "turnledger"]) == 1


async def test_a_sidecar_that_comes_up_later_is_found(opened: Open, target: str) -> None:
    """A ledger made before its sidecar reads from it within a second or two of its start."""
    async with opened(target) as ledger:
        assert (await ledger.begin(**KEYS)).history is None
        async with serving(Script(), target):
            with within(2.5):
                turn = await ledger.begin(**KEYS)
                for _ in range(50):
                    if turn.history is not None:
                        break
                    await asyncio.sleep(0.05)
                    turn = await ledger.begin(**KEYS)
    assert turn.history.text == BLOCK


async def test_a_write_waits_for_a_sidecar_that_restarts(opened: Open, target: str) -> None:
    """An entry written while its sidecar is down is recorded once it is up, within the deadline."""
    async with opened(target) as ledger:
        turn = await ledger.begin(**KEYS)
        writing = asyncio.create_task(turn.complete(Reply("r"), trigger="T"))
        await asyncio.sleep(0.5)
        script = Script()
        async with serving(script, target):
            receipt = await asyncio.wait_for(writing, 5)
    assert receipt.in_ledger
    assert receipt.attempts > 1
    assert len(script.seen["Append"]) == 1


async def test_a_closed_ledger_fails_as_closed(opened: Open, target: str) -> None:
    """After close, reads fail open and writes fail into their receipt, as CLOSED."""
    async with serving(Script(), target):
        async with opened(target) as ledger:
            turn = await ledger.begin(**KEYS)
        assert await turn.user_message(**ASK) == AFTER
        assert (await turn.complete(Reply("r"), trigger="T")).failure.reason == "CLOSED"
        assert (await ledger.begin(**KEYS)).read_failure.reason == "CLOSED"


async def test_closing_under_a_call_is_no_cancellation(opened: Open, target: str) -> None:
    """A call in flight when the ledger is closed ends as CLOSED, and its task lives on."""
    async with serving(Script(History=hangs), target):
        async with opened(target) as ledger:
            reading = asyncio.create_task(ledger.begin(**KEYS))
            await asyncio.sleep(0.2)
        turn = await asyncio.wait_for(reading, 1)
    assert turn.read_failure.reason == "CLOSED"


async def test_cancelling_the_engines_task_cancels_the_call(target: str) -> None:
    """A cancelled task leaves at once with CancelledError, in a call and in a wait, and the sidecar's call ends too."""
    ended = asyncio.Event()

    async def watch(_request: Any, _context: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = fails("UNAVAILABLE", "STORE_UNAVAILABLE", retry_seconds=5)
    async with serving(Script(History=watch, Append=waiting), target), Ledger(target) as ledger:
        for call in (ledger.begin(**KEYS), (await quick_turn(target, ledger)).complete(Reply("r"), trigger="T")):
            task = asyncio.create_task(call)
            await asyncio.sleep(0.2)
            task.cancel()
            with within(0), pytest.raises(asyncio.CancelledError):
                await task
        await asyncio.wait_for(ended.wait(), 1)
        assert ledger.stats.read_failures == ledger.stats.write_failures == 0


async def quick_turn(target: str, ledger: Ledger) -> Any:
    """A turn of `ledger` that needed no call to the sidecar."""
    async with serving(Script(), f"{target}2"), Ledger(f"{target}2") as other:
        return ledger.resume((await other.begin(**KEYS)).save())


async def test_the_server_saying_cancelled_is_no_cancellation(opened: Open, target: str) -> None:
    """A status CANCELLED from the sidecar is a failure of the call, never of the engine's task."""
    async with serving(Script(History=fails("CANCELLED")), target), opened(target) as ledger:
        assert (await ledger.begin(**KEYS)).read_failure.code == "CANCELLED"


async def test_a_second_event_loop_is_told_so(target: str) -> None:
    """A ledger of one loop that is used in another raises a RuntimeError that says what to do, instead of hanging."""
    async with Ledger(target) as ledger:
        await ledger.begin(**KEYS)
        with pytest.raises(RuntimeError, match="one event loop"):
            await asyncio.to_thread(asyncio.run, ledger.begin(**KEYS))


@pytest.mark.parametrize("shell", [Ledger, BlockingLedger])
@pytest.mark.parametrize(
    "target", ["/run/x.sock", "", "unix:", "unix:///", "localhost", "host:", "http://host:1", ":1"]
)
async def test_targets_of_other_forms_are_refused(shell: Any, target: str) -> None:
    """What could never reach a sidecar is a ValueError where the ledger is made."""
    with pytest.raises(ValueError, match="target"):
        shell(target)
    await asyncio.sleep(0)
