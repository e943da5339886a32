"""`--play`: the whole story in one go, with real processes, and a check of everything that it claims."""

from pathlib import Path
from typing import Final

from turnledger.compose import HISTORY_HEADING

from examples.engine.process import EngineProcess
from examples.engine.stage import Stage
from examples.engine.story import github_comment, gitlab_note, jira_comment, slack_direct_message

_GITHUB: Final = {"X_GitHub_Event": "issue_comment"}


async def play(ledger: str, folder: Path) -> int:
    """Play all scenes. Answers the exit code: 0 if everything was as claimed."""
    stage = Stage(ledger, folder)
    async with stage.engine() as engine:
        await _two_turns(stage, engine)
        await _redelivery(stage, engine)
        await _direct_message(stage, engine)
        await _nonsense(stage, engine)
    await _unsent(stage)
    await _crash_before_append(stage)
    await _crash_after_append(stage)
    print(f"\n{'All of it was as claimed.' if not stage.failed else f'{stage.failed} claims did not hold.'}")
    return min(stage.failed, 1)


async def _two_turns(stage: Stage, engine: EngineProcess) -> None:
    stage.scene("A conversation begins", "Two comments on one Jira issue come close together: one batch, one turn.")
    await engine.listens()
    await engine.post("/webhooks/jira", jira_comment(1, "I was charged twice for order 20931."))
    await engine.post("/webhooks/jira", jira_comment(2, "I can confirm that, I see both payments.", sender="Jonas"))
    await engine.idle()
    stage.see("one reply for both", holds=len(stage.outside("reply")) == 1)
    stage.scene("It goes on", "The second turn finds the first one in its prompt, and does not do it again.")
    await engine.post("/webhooks/jira", jira_comment(3, "Any news?"))
    await engine.idle()
    first, second = (reply["text"] for reply in stage.outside("reply"))
    stage.see("the first reply stands in the second turn's prompt", holds=first in stage.prompts("jira:SHOP-7")[-1])
    stage.see("no second ticket was opened, and the reply is another", holds=_tickets(stage) == 1 and first != second)
    reviewed = "".join(stage.prompts("jira:SHOP-7", "review"))
    stage.see("the reviewer got no history", holds=bool(reviewed) and HISTORY_HEADING not in reviewed)


async def _redelivery(stage: Stage, engine: EngineProcess) -> None:
    stage.scene("A redelivery", "Jira sends the last comment again. Its turn is over, so it is dropped.")
    _, answer = await engine.post("/webhooks/jira", jira_comment(3, "Any news?"))
    await engine.idle()
    stage.see(f"the webhook is told {answer['arrival']!r}", holds=answer["arrival"] == "answered before")
    stage.see("nobody was answered twice", holds=len(stage.outside("reply")) == 2)


async def _direct_message(stage: Stage, engine: EngineProcess) -> None:
    stage.show_prompts = False
    stage.scene(
        "A direct message with two threads", "Two partitions, so two batches; one conversation, so one history."
    )
    posted = [
        slack_direct_message("1772.0009", "The label printer is stuck.", thread="1772.0001"),
        slack_direct_message("1772.0010", "And where do I find the new price list?", thread="1772.0002"),
    ]
    answers = [(await engine.post("/webhooks/slack", body))[1] for body in posted]
    await engine.idle()
    stage.see("two partitions", holds=len({answer["partition"] for answer in answers}) == 2)
    stage.see("one conversation", holds={answer["conversation"] for answer in answers} == {"slack:D0SEAT"})
    first = stage.outside("reply")[-2]["text"]
    stage.see("the second thread's turn knows the first's", holds=first in stage.prompts("slack:D0SEAT")[-1])


async def _nonsense(stage: Stage, engine: EngineProcess) -> None:
    stage.scene("Nonsense", "What is no JSON is refused; what names no conversation is an event, and leaves no entry.")
    refused, why = await engine.post("/webhooks/jira", b"{nonsense")
    stage.see(f"{refused}: {why['error']}", holds=refused == 400)
    taken, answer = await engine.post("/webhooks/github", {"zen": "Keep it logically awesome."}, X_GitHub_Event="ping")
    await engine.idle()
    stage.see(f"{taken}: {answer['conversation'][:14]}…, {answer['reason']}", holds=taken == 202)


async def _unsent(stage: Stage) -> None:
    stage.scene(
        "Nobody receives the reply", "The chat is down. The ledger says so to the next turn, until it is settled."
    )
    async with stage.engine("--failing-deliveries", "2") as engine:
        for number in (1, 2):
            await engine.post("/webhooks/github", github_comment(number, f"Still broken, try {number}."), **_GITHUB)
            state = await engine.idle()
        stage.see("two texts reached nobody", holds=state["unsent"] == 2)
        told = "You did NOT reply" in stage.prompts("github:acme/shop#42")[-1]
        stage.see("the second turn was told, and said it again", holds=told)
        _, answer = await engine.post("/deliveries", {})
        outcomes = [delivered["outcome"] for delivered in answer["delivered"]]
        stage.see("the chat is back: both are delivered and settled", holds=outcomes == ["settled", "settled"])


async def _crash_before_append(stage: Stage) -> None:
    stage.scene(
        "A crash in a turn", "The engine is killed after a ticket was opened, before anything is in the ledger."
    )
    before = _tickets(stage)
    async with stage.engine("--crash-after", "write") as engine:
        await engine.post("/webhooks/gitlab", gitlab_note(1, "The rollout hangs."))
        await engine.ended()
    async with stage.engine() as engine:
        await engine.idle()
    stage.see("redelivered unchanged, and the ticket was opened once", holds=_tickets(stage) == before + 1)


async def _crash_after_append(stage: Stage) -> None:
    stage.scene("A crash after the turn", "The engine is killed with the turn in the ledger, and not acknowledged.")
    async with stage.engine("--crash-after", "append") as engine:
        await engine.post("/webhooks/gitlab", gitlab_note(2, "It still hangs."))
        await engine.ended()
    before = len(stage.outside("reply"))
    async with stage.engine() as engine:
        await engine.idle()
        stage.see("redelivered, recognised, and not answered again", holds=len(stage.outside("reply")) == before)
        work_key = await _suspension(stage, engine)
    await _resumption(stage, work_key)


async def _suspension(stage: Stage, engine: EngineProcess) -> str:
    """Answers what the suspended turn waits under."""
    stage.scene("A person is asked", "The turn is suspended, and its engine ends.")
    await engine.post("/webhooks/jira", jira_comment(4, "The shop is slow since noon, please restart it."))
    (work_key,) = (await engine.idle())["suspended"]
    await engine.stop()
    return str(work_key)


async def _resumption(stage: Stage, work_key: str) -> None:
    stage.scene("A person says yes", "Another process takes the turn up where it was, with the same bytes.")
    before = stage.prompts("jira:SHOP-7")[-1]
    async with stage.engine() as engine:
        await engine.post(f"/approvals/{work_key}", {"approved": True})
        await engine.idle()
    after = stage.prompts("jira:SHOP-7")[-1]
    stage.see("the shop was restarted, once", holds=len(stage.outside("restart")) == 1)
    stage.see("the resumed prompt begins with the very bytes of the earlier one", holds=after.startswith(before))


def _tickets(stage: Stage) -> int:
    return len(stage.outside("ticket"))
