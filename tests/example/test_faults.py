"""The example engine where something fails: its channel, its sidecar, its callers."""

import asyncio
import signal
import time
from pathlib import Path

from examples.engine.story import github_comment, jira_comment
from tests.example.running import block, engine, prompts, replies
from tests.support.running import process

JIRA = "/webhooks/jira"
GITHUB = "/webhooks/github"


async def test_an_unsent_reply_is_told_until_it_is_settled(ledger: str, folder: Path) -> None:
    """The next turn is told that nobody received the text; once it was delivered after all, the one after is not."""
    async with engine(ledger, folder, "--failing-deliveries", "2") as running:
        for number in (1, 2):
            await running.post(GITHUB, github_comment(number, f"Try {number}."), X_GitHub_Event="issue_comment")
            assert (await running.idle())["unsent"] == number
        assert replies(folder) == []
        status, answer = await running.post("/deliveries", {})
        assert (status, answer["unsent"]) == (202, 0)
        assert [one["outcome"] for one in answer["delivered"]] == ["settled", "settled"]
        await running.post(GITHUB, github_comment(3, "Try 3."), X_GitHub_Event="issue_comment")
        await running.idle()
    _, told, settled = (block(turn[0]) for turn in prompts(folder, "github:acme/shop#42").values())
    assert told.count("You did NOT reply: nobody received this text.\n| Thank you") == 1
    assert settled.count("\nYou replied:\n") == 2
    assert "You did NOT reply" not in settled


async def test_a_turn_resumes_on_another_node_with_the_same_bytes(ledger: str, folder: Path, tmp_path: Path) -> None:
    """A second process beside a second, empty sidecar goes on with the block that the first one froze."""
    async with engine(ledger, folder) as running:
        for number, text in ((1, "It is slow."), (2, "Please restart it.")):
            await running.post(JIRA, jira_comment(number, text))
            state = await running.idle()
        assert await running.stop() == 0
    listen = f"unix://{tmp_path}/t.sock"
    async with process(listen, store=tmp_path / "other.db") as other, engine(listen, folder) as running:
        await other.says("the store is open")
        assert (await running.state())["suspended"] == state["suspended"]
        await running.post(f"/approvals/{state['suspended'][0]}", {"approved": True})
        assert (await running.idle())["suspended"] == []
    before, after = list(prompts(folder, "jira:SHOP-7").values())[-1][1:]
    assert replies(folder)[0] in block(before)
    assert block(after).encode() == block(before).encode()
    assert after.startswith(before)
    assert any("recorded as entry 1" in line for line in running.lines)


async def test_the_engine_goes_on_when_its_sidecar_dies(folder: Path, tmp_path: Path) -> None:
    """A turn without a sidecar runs on the prompt of before the ledger, is answered at once, and is over."""
    listen = f"unix://{tmp_path}/s.sock"
    async with process(listen, store=tmp_path / "store.db") as sidecar:
        await sidecar.says("the store is open")
        async with engine(listen, folder, "--append-seconds", "1") as running:
            await running.post(JIRA, jira_comment(1, "Before."))
            await running.idle()
            sidecar.send(signal.SIGKILL)
            await sidecar.ended()
            posted = time.monotonic()
            await running.post(JIRA, jira_comment(2, "After."))
            state = await running.idle()
            took = time.monotonic() - posted
            again = await running.post(JIRA, jira_comment(2, "After."))
    assert state["over"] == 2
    assert took < 10
    assert len(replies(folder)) == 2
    assert block(list(prompts(folder, "jira:SHOP-7").values())[-1][0]) == ""
    assert any("could not be read" in line for line in running.lines)
    assert any("NOT recorded" in line for line in running.lines)
    assert again[1]["arrival"] == "answered before"


async def test_nonsense_is_refused_or_taken_as_an_event(ledger: str, folder: Path) -> None:
    """No body stops the engine: what is no object is refused with a reason, what names no conversation has none."""
    async with engine(ledger, folder) as running:
        for body in (b"", b"{", b"[]", b"\xff\xfe\x00", b"[" * 100_000, b"7", b'"text"'):
            status, answer = await running.post(JIRA, body)
            assert (status, bool(answer["error"])) == (400, True), body
        assert (await running.post("/webhooks/fax", {}))[0] == 404
        assert (await running.post("/approvals/nothing", {"approved": True}))[0] == 404
        assert (await running.post("/approvals/nothing", {"approved": "maybe"}))[0] == 400
        lone = {"issue": {"key": "SHOP-9", "id": 7}, "comment": {"id": 1, "created": "now", "body": "\ud800\x00"}}
        events: tuple[object, ...] = ({}, {"issue": 7}, {"comment": {"body": {"type": "doc"}}}, {"event": [1]})
        for source in ("jira", "github", "gitlab", "slack"):
            for event in events:
                status, answer = await running.post(f"/webhooks/{source}", event)
                assert (status, answer["conversation"][:6], bool(answer["reason"])) == (202, "event:", True)
        assert (await running.post(JIRA, lone))[1]["conversation"] == "jira:SHOP-9"
        assert (await running.idle())["over"] == 17
        assert (await running.post(JIRA, jira_comment(1, "Are you there?")))[0] == 202
        await running.idle()
    assert len(prompts(folder, "jira:SHOP-7")) == 1


async def test_a_caller_that_talks_no_http_harms_nobody(ledger: str, folder: Path) -> None:
    """Bytes that are no request, or no body that fits, are answered with a refusal, and the next caller is served."""
    async with engine(ledger, folder) as running:
        port = await running.listens()
        for said, status in (
            (b"\x16\x03\x01 nonsense\r\n\r\n", b"400"),
            (b"POST /webhooks/jira HTTP/1.1\r\n\r\n", b"411"),
            (b"POST /webhooks/jira HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"411"),
            (b"POST /webhooks/jira HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
            (b"PATCH / HTTP/1.1\r\n\r\n", b"501"),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(said)
            assert status in await reader.read(), said
            writer.close()
            await writer.wait_closed()
        assert (await running.state())["over"] == 0
