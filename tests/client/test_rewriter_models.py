"""Good and bad models behind real HTTP, through a real sidecar, to what the next turn is told."""

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from turnledger import CallKind, Deadlines, Reply, Unsent
from turnledger.openai import AsyncOpenAIRewriter, OpenAIRewriter

from tests.client.chat_models import (
    answers_no_json,
    answers_other_json,
    babbles,
    crashes,
    echoes,
    fails_inside,
    half_a_surrogate,
    has_no_quota,
    invents,
    is_cut_short,
    overruns,
    says_nothing,
    wants_payment,
)
from tests.client.chat_server import Chat, Model, chatting, fenced
from tests.client.real_sidecar import real_sidecar
from tests.client.rewriters import Heard, until
from tests.client.scripted_sidecar import Open

BODY = "Dear Mira, order 20931 was charged twice and the second charge of 129.90 EUR goes back. " * 6
PARAPHRASE = "An apology to Mira about order 20931, with 129.90 EUR going back."


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """One sidecar for the module; each test has a conversation of its own."""
    with real_sidecar() as served:
        yield served


Playing = Callable[..., Any]


@pytest.fixture
def playing(opened: Open, target: str, request: pytest.FixtureRequest) -> Playing:
    """Opens a ledger of either shell whose rewriter asks the given server."""
    blocking = request.node.callspec.params["opened"] == "blocking"

    @asynccontextmanager
    async def play(chat: Chat, heard: Heard, **options: Any) -> AsyncIterator[Any]:
        asked = OpenAIRewriter if blocking else AsyncOpenAIRewriter
        rewriter = asked(model="small", base_url=chat.url, api_key="k", **options.pop("asking", {}))
        try:
            async with opened(target, rewriter=rewriter, on_event=heard, **options) as ledger:
                yield ledger
        finally:
            closed = rewriter.close()
            if closed is not None:
                await closed

    return play


class Conversation:
    """A conversation of its own, played turn by turn."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger
        self._key = f"jira:{uuid.uuid4()}"
        self._turns = 0

    async def begin(self, **options: Any) -> Any:
        self._turns += 1
        turn = f"run-{self._turns:08}"
        return await self._ledger.begin(
            agent_handle="support", conversation_key=self._key, turn_id=turn, work_key=turn, **options
        )

    async def mails(self, body: str = BODY) -> None:
        """A turn that sent one bulky mail."""
        turn = await self.begin()
        turn.called("send_mail", f'{{"body": "{body}"}}', kind=CallKind.WRITE)
        assert (await turn.complete(Reply("Done."), trigger="Refund, please.")).in_ledger

    async def fills_up(self, turns: int = 4) -> None:
        """Turns with replies so long that the first two slide into the account; the first reply was never sent."""
        for number in range(turns):
            turn = await self.begin()
            turn.called("refund", f'{{"order": {100 + number}}}', kind=CallKind.WRITE)
            text = f"Answer {number}. " + "We look into it. " * 440
            outcome = Unsent(text) if number == 0 else Reply(text)
            assert (await turn.complete(outcome, trigger=f"Where is order {100 + number}?")).in_ledger

    async def block(self, **options: Any) -> str:
        """What the next turn is told."""
        text: str = (await self.begin(**options)).history.text
        return text


async def test_a_paraphrase_is_accepted_and_seen(playing: Playing) -> None:
    """A good rewrite stands in the next block, announced as condensed; tokens are those that the server counted."""
    heard = Heard()
    with chatting(lambda _prompt, _call: PARAPHRASE) as chat:
        async with playing(chat, heard) as ledger:
            conversation = Conversation(ledger)
            await conversation.mails()
            (filled,) = await heard.of(1)
            block = await conversation.block()
            stats = ledger.stats
    assert (filled.outcome, filled.calls, filled.prompt_tokens, filled.completion_tokens) == ("accepted", 1, 70, 7)
    assert block.count(f'(condensed) "{PARAPHRASE}"') == 1
    assert BODY not in block
    assert fenced(chat.prompts[0]) == BODY
    assert (stats.orders_accepted, stats.rewriter_prompt_tokens) == (1, 70)


async def test_an_error_is_condensed_too(playing: Playing) -> None:
    """What a failed call reported at length gets its words like an argument."""
    heard = Heard()
    with chatting(lambda _prompt, _call: "The mail server refused it.") as chat:
        async with playing(chat, heard) as ledger:
            conversation = Conversation(ledger)
            turn = await conversation.begin()
            turn.called("send_mail", "{}", error="550 refused by the mail server of the customer. " * 9)
            await turn.complete(Unsent("Sorry."), trigger="T")
            (filled,) = await heard.of(1)
            block = await conversation.block()
    assert (filled.kind, filled.outcome) == ("error", "accepted")
    assert "(condensed) The mail server refused it." in block


async def test_a_redelivery_fills_what_the_first_run_left_open(playing: Playing) -> None:
    """A turn that was recorded without rewrites names its orders again when it is completed once more."""
    heard = Heard()
    with chatting(lambda _prompt, _call: PARAPHRASE) as chat:
        async with playing(chat, heard) as ledger:
            conversation = Conversation(ledger)
            turn = await conversation.begin()
            turn.called("send_mail", f'{{"body": "{BODY}"}}')
            first = await turn.complete(Reply("Done."), trigger="T", rewrite=False)
            again = await turn.complete(Reply("Done."), trigger="T")
            await heard.of(1)
            block = await conversation.block()
    assert (first.disposition, again.disposition) == ("recorded", "duplicate")
    assert (heard.outcomes, len(chat.bodies)) == (["accepted"], 1)
    assert PARAPHRASE in block


@pytest.mark.parametrize(
    ("model", "outcome", "verdict", "calls"),
    [
        (overruns, "rejected", "too_long", 2),
        (echoes, "rejected", "echo", 2),
        (invents, "rejected", "invented", 2),
        (says_nothing, "rejected", "empty", 2),
        (babbles, "rejected", "invalid_text", 2),
        (half_a_surrogate, "rejected", "invalid_text", 2),
        (crashes, "error", None, 1),
        (fails_inside, "error", None, 1),
        (answers_no_json, "error", None, 1),
        (answers_other_json, "error", None, 1),
        (is_cut_short, "error", None, 1),
        (has_no_quota, "no_budget", None, 1),
        (wants_payment, "no_budget", None, 1),
    ],
    ids=lambda given: getattr(given, "__name__", None),
)
async def test_a_bad_model_changes_nothing_that_was_true(
    playing: Playing, model: Model, outcome: str, verdict: str | None, calls: int
) -> None:
    """Whatever it answers, the argument stands by size and digest as before, and the server saw so many calls."""
    heard = Heard()
    with chatting(model) as chat:
        async with playing(chat, heard) as ledger:
            conversation = Conversation(ledger)
            await conversation.mails()
            (filled,) = await heard.of(1)
            block = await conversation.block()
    assert (filled.outcome, filled.verdict, filled.calls) == (outcome, verdict, calls)
    assert len(chat.bodies) == calls
    assert "not shown, digest" in block
    assert "condensed" not in block.partition("### ")[2]
    if calls == 2:
        assert chat.prompts[1].startswith(chat.prompts[0])
        assert "The answer before this one" in chat.prompts[1]


async def test_a_retry_that_is_told_by_how_much_it_was_over_fits(playing: Playing) -> None:
    """A model that shortens when told to is accepted at the second call."""
    heard = Heard()
    with chatting(lambda _prompt, call: PARAPHRASE if call == 2 else PARAPHRASE * 9) as chat:
        async with playing(chat, heard) as ledger:
            conversation = Conversation(ledger)
            await conversation.mails()
            (filled,) = await heard.of(1)
            block = await conversation.block()
    over = len(PARAPHRASE.encode()) * 9 - 200
    assert (filled.outcome, filled.calls, len(chat.bodies)) == ("accepted", 2, 2)
    assert f"{over} bytes too long" in chat.prompts[1]
    assert f'(condensed) "{PARAPHRASE}"' in block


LIE = "The reply was sent and the customer was told everything."


async def test_a_lying_note_leaves_the_facts_as_they_are(playing: Playing) -> None:
    """A model that claims a reply was sent cannot change the line that says it was not."""
    heard = Heard()
    with chatting(lambda _prompt, _call: LIE) as chat:
        async with playing(chat, heard) as ledger:
            conversation = Conversation(ledger)
            await conversation.fills_up()
            await heard.of(2)
            block = await conversation.block()
    assert heard.outcomes == ["accepted", "accepted"]
    assert len(chat.bodies) == 2
    lines = block.split("\n")
    at = next(place for place, line in enumerate(lines) if line.startswith("- ") and "(turn run-00000001)" in line)
    assert "did NOT reply" in lines[at]
    assert "writes: refund" in lines[at]
    assert lines[at + 1] == f"| {LIE}"
    assert block.count(f"| {LIE}") == 2


async def test_notes_are_made_once_and_seen_from_then_on(playing: Playing) -> None:
    """Two turns that slid out are condensed by one call each, however many turns begin afterwards."""
    heard = Heard()
    with chatting(lambda _prompt, _call: "Somebody asked, and was answered.") as chat:
        async with playing(chat, heard) as ledger:
            conversation = Conversation(ledger)
            await conversation.fills_up()
            await heard.of(2)
            blocks = [await conversation.block(wait_for_notes=wait) for wait in (False, True, False)]
            stats = ledger.stats
    assert [block.count("| Somebody asked, and was answered.") for block in blocks] == [2, 2, 2]
    assert (len(chat.bodies), stats.orders_accepted, stats.rewriter_calls) == (2, 2, 2)


async def test_begin_waits_for_notes_that_nobody_made_yet(opened: Open, playing: Playing, target: str) -> None:
    """Notes that were never run (another engine, a turn without budget) are there when the turn starts."""
    heard = Heard()
    with chatting(lambda _prompt, _call: "Somebody asked, and was answered.") as chat:
        async with opened(target) as silent:
            conversation = Conversation(silent)
            await conversation.fills_up()
            assert (await conversation.block()).count("(no note)") == 2
        async with playing(chat, heard, deadlines=Deadlines(begin=15)) as ledger:
            conversation._ledger = ledger
            block = await conversation.block(wait_for_notes=True)
    assert heard.outcomes == ["accepted", "accepted"]
    assert (block.count("| Somebody asked, and was answered."), block.count("(no note)")) == (2, 0)


async def test_a_rejected_note_is_not_paid_for_again(playing: Playing) -> None:
    """History goes on asking for a note that this model cannot write; the ledger does not go on calling."""
    heard = Heard()
    with chatting(invents) as chat:
        async with playing(chat, heard) as ledger:
            conversation = Conversation(ledger)
            await conversation.fills_up()
            await heard.of(2)
            for _ in range(3):
                block = await conversation.block(wait_for_notes=True)
    assert len(chat.bodies) == 4
    assert heard.outcomes == ["rejected", "rejected"]
    assert block.count("(no note)") == 2


async def test_a_hanging_server_ends_at_the_orders_deadline(playing: Playing) -> None:
    """The turn is over at once, and the order when its time is."""
    heard, gate = Heard(), threading.Event()

    def hangs(_prompt: str, _call: int) -> str:
        gate.wait(20)
        return ""

    with chatting(hangs) as chat:
        async with playing(chat, heard, deadlines=Deadlines(rewrite=0.5)) as ledger:
            began = time.monotonic()
            await Conversation(ledger).mails()
            turn_s = time.monotonic() - began
            (filled,) = await heard.of(1)
            order_s = time.monotonic() - began
        gate.set()
    assert filled.outcome in ("deadline", "error")  # the library's own timeout may come a moment before ours
    assert filled.error in ("", "APITimeoutError")
    assert turn_s < 0.45
    assert 0.4 < order_s < 1.5
    assert len(chat.bodies) == 1


async def test_close_with_a_hanging_server_returns_in_its_bound(playing: Playing) -> None:
    """`Deadlines.close` and half a second, whatever the server does."""
    heard, gate = Heard(), threading.Event()

    def hangs(_prompt: str, _call: int) -> str:
        gate.wait(20)
        return ""

    with chatting(hangs) as chat:
        async with playing(chat, heard, deadlines=Deadlines(close=0.3), asking={"timeout": 2}) as ledger:
            await Conversation(ledger).mails()
            await until(lambda: bool(chat.bodies))
            began = time.monotonic()
            await ledger.close()
            took = time.monotonic() - began
        gate.set()
    assert heard.outcomes == ["abandoned"]
    assert 0.25 < took < 1.2


async def test_an_endpoint_without_quota_is_asked_once_for_a_batch(playing: Playing) -> None:
    """Four orders of one answer, one refusal: the others are not run."""
    heard = Heard()
    with chatting(has_no_quota) as chat:
        async with playing(chat, heard, rewrites_at_once=1) as ledger:
            conversation = Conversation(ledger)
            turn = await conversation.begin()
            for number in range(4):
                turn.called("send_mail", f'{{"body": "{number} {BODY}"}}')
            await turn.complete(Reply("Done."), trigger="T")
            await heard.of(4)
            block = await conversation.block()
    assert (heard.outcomes, len(chat.bodies)) == (["no_budget"] * 4, 1)
    assert block.count("not shown, digest") == 4


async def test_a_server_meets_no_more_calls_at_once_than_allowed(playing: Playing) -> None:
    """Twelve orders of three turns, three at a time."""
    heard = Heard()

    def slow(_prompt: str, _call: int) -> str:
        time.sleep(0.05)
        return PARAPHRASE

    async def one(ledger: Any) -> None:
        turn = await Conversation(ledger).begin()
        for number in range(4):
            turn.called("send_mail", f'{{"body": "{number} {BODY}"}}')
        await turn.complete(Reply("Done."), trigger="T")

    with chatting(slow) as chat:
        async with playing(chat, heard) as ledger:
            await asyncio.gather(*(one(ledger) for _ in range(3)))
            await heard.of(12)
    assert (chat.most, len(chat.bodies), heard.outcomes) == (3, 12, ["accepted"] * 12)
