"""The example engine on invented webhooks: real processes, real sockets."""

import asyncio
import re
from pathlib import Path

from examples.engine.story import gitlab_note, jira_comment, slack_direct_message
from tests.example.running import block, engine, outside, prompts, replies, rounds

JIRA = "/webhooks/jira"


async def test_the_second_turn_knows_the_first(ledger: str, folder: Path) -> None:
    """What the first turn replied and did stands in the second turn's prompt, which then does and says otherwise."""
    async with engine(ledger, folder) as running:
        for number in (1, 2):
            await running.post(JIRA, jira_comment(number, f"Message {number}."))
            await running.idle()
    first, second = prompts(folder, "jira:SHOP-7").values()
    told, retold = replies(folder)
    assert [block(prompt) for prompt in first] == [""] * 4
    assert f"You replied:\n| {told}" in second[0]
    assert len({block(prompt) for prompt in second}) == 1
    assert len(outside(folder, "ticket")) == 1
    assert retold != told


async def test_messages_that_come_together_are_one_turn(ledger: str, folder: Path) -> None:
    """A burst becomes one batch, whose task and trigger hold each message whole with its sender and time."""
    async with engine(ledger, folder, "--quiet", "0.5") as running:
        await running.post(JIRA, jira_comment(1, "First.", sender="Mira"))
        await running.post(JIRA, jira_comment(2, "Second.", sender="Jonas"))
        await running.idle()
        await running.post(JIRA, jira_comment(3, "Third."))
        await running.idle()
    merged, later = (turn[0] for turn in prompts(folder, "jira:SHOP-7").values())
    parts = ["2 messages came together", "] Mira, 2026-03-02T09:01", "First.", "] Jonas, 2026-03-02T09:02", "Second."]
    for told in (merged, block(later)):
        places = [told.find(part) for part in parts]
        assert -1 not in places
        assert places == sorted(places)


async def test_a_redelivery_is_dropped_once_its_turn_is_over(ledger: str, folder: Path) -> None:
    """The same trigger is one row while it waits, and is dropped after it was answered, in another process too."""
    async with engine(ledger, folder, "--quiet", "0.5") as running:
        answers = [(await running.post(JIRA, jira_comment(1, "Once.")))[1]["arrival"] for _ in range(2)]
        await running.idle()
    async with engine(ledger, folder) as running:
        answers.append((await running.post(JIRA, jira_comment(1, "Once.")))[1]["arrival"])
        state = await running.idle()
    assert answers == ["new", "waiting already", "answered before"]
    assert state["over"] == 1
    assert len(replies(folder)) == 1


async def test_a_happening_that_names_its_conversation_late_is_answered_there(ledger: str, folder: Path) -> None:
    """A comment that came without its issue, and again with it while the first one waits, is one turn of the issue."""
    whole = jira_comment(1, "Where do I belong?")
    lost = {name: part for name, part in whole.items() if name != "issue"}
    async with engine(ledger, folder, "--quiet", "0.5") as running:
        answers = [(await running.post(JIRA, body))[1] for body in (lost, whole, lost)]
        state = await running.idle()
    assert len({answer["trigger"] for answer in answers}) == 1
    assert [answer["arrival"] for answer in answers] == ["new", "new", "waiting already"]
    assert state["over"] == 1
    assert len(prompts(folder, "jira:SHOP-7")) == len(replies(folder)) == 1


async def test_a_crash_between_write_and_append_is_repeated_and_recorded_once(ledger: str, folder: Path) -> None:
    """The killed run left no entry; the redelivered batch is the same work, whose ticket is not opened again."""
    async with engine(ledger, folder, "--crash-after", "write") as running:
        await running.post("/webhooks/gitlab", gitlab_note(1, "The rollout hangs."))
        assert await running.ended() == -9
    async with engine(ledger, folder) as running:
        await running.idle()
        await running.post("/webhooks/gitlab", gitlab_note(2, "And now?"))
        await running.idle()
    killed, repeated, following = (turn[0] for turn in prompts(folder, "gitlab:acme/tools/deploy!5").values())
    assert killed == repeated
    assert block(following).count("\n### ") == 1
    assert len(outside(folder, "ticket")) == 1


async def test_a_reply_that_went_out_before_a_crash_is_the_one_that_is_recorded(ledger: str, folder: Path) -> None:
    """A run that died after its delivery is run again, and asks nothing more of a channel that is down by now."""
    async with engine(ledger, folder, "--crash-after", "delivery") as running:
        await running.post(JIRA, jira_comment(1, "Hello?"))
        assert await running.ended() == -9
    async with engine(ledger, folder, "--failing-deliveries", "1") as running:
        await running.idle()
        await running.post(JIRA, jira_comment(2, "Hello again."))
        await running.idle()
    (first,) = replies(folder)
    assert f"You replied:\n| {first}" in list(prompts(folder, "jira:SHOP-7").values())[-1][0]


async def test_a_crash_after_append_is_recognised(ledger: str, folder: Path) -> None:
    """A batch whose turn is in the ledger is acknowledged without a round, and without a second answer."""
    async with engine(ledger, folder, "--crash-after", "append") as running:
        await running.post(JIRA, jira_comment(1, "Hello?"))
        assert await running.ended() == -9
    async with engine(ledger, folder) as running:
        state = await running.idle()
    assert state["over"] == 1
    assert any("already in the ledger" in line for line in running.lines)
    assert len(prompts(folder, "jira:SHOP-7")) == len(replies(folder)) == 1


async def test_a_resumed_run_that_crashed_after_append_is_a_duplicate(ledger: str, folder: Path) -> None:
    """A resumed turn reads no history, so its repetition is recognised by Append: one entry, one reply, one restart."""
    async with engine(ledger, folder, "--crash-after", "append") as running:
        await running.post(JIRA, jira_comment(1, "Please restart it."))
        (work_key,) = (await running.idle())["suspended"]
        await running.post(f"/approvals/{work_key}", {"approved": True})
        assert await running.ended() == -9
    async with engine(ledger, folder) as running:
        await running.idle()
    assert any("duplicate as entry 1" in line for line in running.lines)
    assert len(outside(folder, "restart")) == len(replies(folder)) == 1


async def test_a_suspended_turn_holds_its_thread_and_not_its_conversation(ledger: str, folder: Path) -> None:
    """While one thread of a direct message waits for a person the other is answered, and its own messages wait."""
    async with engine(ledger, folder) as running:
        for ts, text, thread in (
            ("1.2", "Restart it, please.", "1.1"),
            ("1.3", "Also: hello.", "1.1"),
            ("2.2", "Hi.", "2.1"),
        ):
            await running.post("/webhooks/slack", slack_direct_message(ts, text, thread=thread))
            await asyncio.sleep(0.3)
        state = await running.state()
        assert (state["over"], state["waiting"]) == (1, 1)
        await running.post(f"/approvals/{state['suspended'][0]}", {"approved": False})
        state = await running.idle()
    assert state["over"] == 3
    assert "A person said no to the restart." in replies(folder)[1]
    assert outside(folder, "restart") == []


async def test_two_threads_of_a_direct_message_share_one_history(ledger: str, folder: Path) -> None:
    """Two partitions are two turns, one after the other, and the second knows the first."""
    async with engine(ledger, folder, "--thinking", "0.05") as running:
        posted = [
            (await running.post("/webhooks/slack", slack_direct_message(ts, "Hello.", thread=thread)))[1]
            for ts, thread in (("1.2", "1.1"), ("2.2", "2.1"))
        ]
        await running.idle()
    assert [answer["partition"] for answer in posted] == ["slack:D0SEAT:1.1", "slack:D0SEAT:2.1"]
    first, second = prompts(folder, "slack:D0SEAT").values()
    assert block(first[-1]) == ""
    assert replies(folder)[0] in block(second[0])
    turns = [turn for _, turn in rounds(folder)]
    assert turns == sorted(turns, key=turns.index)


async def test_conversations_run_side_by_side(ledger: str, folder: Path) -> None:
    """Turns of two conversations overlap, and neither is told of the other."""
    async with engine(ledger, folder, "--thinking", "0.2") as running:
        for issue in ("SHOP-1", "SHOP-2"):
            await running.post(JIRA, jira_comment(int(issue[-1]), f"About {issue}.", issue=issue))
        await running.idle()
    conversations = [conversation for conversation, _ in rounds(folder)]
    assert conversations[:4] != ["jira:SHOP-1"] * 4
    assert sorted(conversations) == ["jira:SHOP-1"] * 4 + ["jira:SHOP-2"] * 4
    for one, other in (("SHOP-1", "SHOP-2"), ("SHOP-2", "SHOP-1")):
        (turn,) = prompts(folder, f"jira:{one}").values()
        assert not any(re.search(other, prompt) for prompt in turn)
