"""The engine: everything is wired here, and what comes in over HTTP finds its way.

Take from it: one Ledger serves all turns of a process. Making it waits for nothing, so an engine starts with or without
its sidecar.
"""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from turnledger import Deadlines, Ledger

from examples.engine.conversations import Conversations
from examples.engine.endpoint import Refused, Request, listening
from examples.engine.faults import Faults
from examples.engine.inbox import Arrival, Inbox
from examples.engine.model import Model
from examples.engine.narrator import Narrator, quoted
from examples.engine.outbox import Outbox, State
from examples.engine.outside import Outside
from examples.engine.partitions import Partitions
from examples.engine.state import open_state
from examples.engine.telling import about_settlement
from examples.engine.tools import Tools
from examples.engine.trigger import EVENT_HEADERS, Trigger, is_known
from examples.engine.turn import Turns

LISTENING: Final = "listening on "


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says. Times are seconds."""

    ledger: str
    seat: str
    folder: Path
    port: int
    quiet: float
    thinking: float
    append: float
    show_prompts: bool
    faults: Faults


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Run until told to stop. What is under way then is left as a crash would leave it, which is good enough."""
    narrator = Narrator(settings.folder / "prompts.jsonl", show_prompts=settings.show_prompts)
    deadlines = Deadlines(complete=settings.append, settle=settings.append)
    async with Ledger(settings.ledger, deadlines=deadlines, on_event=narrator.event) as ledger:
        group = asyncio.TaskGroup()
        async with group:
            engine = Engine(settings, ledger, narrator, group)
            engine.take_up()
            with listening(settings.port, engine.route) as port:
                print(
                    f"{LISTENING}http://127.0.0.1:{port}, ledger {settings.ledger}, files in {settings.folder}\n",
                    flush=True,
                )
                await stop.wait()
            engine.close()


class Engine:
    """One process of the seat."""

    def __init__(self, settings: Settings, ledger: Ledger, narrator: Narrator, group: asyncio.TaskGroup) -> None:
        self._seat = settings.seat
        self._ledger = ledger
        self._narrator = narrator
        self._db = open_state(settings.folder / "engine.db")
        outside = Outside(settings.folder / "outside.jsonl")
        self._inbox = Inbox(self._db)
        self._outbox = Outbox(self._db, outside, settings.faults)
        self._conversations = Conversations()
        turns = Turns(
            seat=settings.seat,
            ledger=ledger,
            inbox=self._inbox,
            outbox=self._outbox,
            model=Model(),
            tools=Tools(outside, settings.faults),
            narrator=narrator,
            faults=settings.faults,
            thinking_seconds=settings.thinking,
        )
        self._partitions = Partitions(group, self._inbox, self._conversations, turns.run, settings.quiet)

    def take_up(self) -> None:
        """Redeliver what a crash left, each batch as it was."""
        for partition in self._inbox.partitions():
            self._partitions.wake(partition)

    def close(self) -> None:
        """Stop the workers where they are."""
        self._partitions.stop()

    async def route(self, request: Request) -> dict[str, Any]:
        """The routes. Whatever else is asked for is refused with what there is."""
        match request.path:
            case ("POST", "webhooks", source) if is_known(source):
                return self._webhook(source, request)
            case ("POST", "approvals", work_key):
                return self._approval(work_key, request.body)
            case ("POST", "deliveries"):
                return await self._deliver_again()
            case ("GET",):
                return {**self._inbox.counts(), "unsent": len(self._outbox.open())}
        routes = "POST /webhooks/{github,gitlab,jira,slack}, POST /approvals/WORK_KEY, POST /deliveries, GET /"
        raise Refused(HTTPStatus.NOT_FOUND, f"there is {routes}")

    def _webhook(self, source: str, request: Request) -> dict[str, Any]:
        """Identify the webhook, keep it, and wake its partition."""
        if source == "slack" and request.body.get("type") == "url_verification":
            return {"challenge": request.body.get("challenge")}
        headers = {name.lower(): value for name, value in request.headers.items()}
        trigger = Trigger.read(source, request.body, headers.get(EVENT_HEADERS.get(source, "").lower()))
        identity = trigger.identity
        arrival = self._inbox.accept(trigger)
        note = f", for no conversation: {identity.reason}" if identity.reason else f" in {identity.partition_key}"
        self._narrator.say(identity.conversation_key, f"webhook {arrival}{note}: {quoted(trigger.message.text)}")
        if arrival is not Arrival.OVER:
            self._partitions.wake(identity.partition_key)
        return {
            "arrival": arrival,
            "conversation": identity.conversation_key,
            "partition": identity.partition_key,
            "trigger": identity.trigger_id,
            "reason": identity.reason,
        }

    def _approval(self, work_key: str, body: dict[str, Any]) -> dict[str, Any]:
        """A person decided: the suspended turn goes on, in this process."""
        approved = body.get("approved")
        if not isinstance(approved, bool):
            raise Refused(HTTPStatus.BAD_REQUEST, 'say {"approved": true} or {"approved": false}')
        partition = self._inbox.decide(work_key, approved=approved)
        if partition is None:
            raise Refused(HTTPStatus.NOT_FOUND, "no turn waits for that")
        self._partitions.wake(partition)
        return {"partition": partition, "approved": approved}

    async def _deliver_again(self) -> dict[str, Any]:
        """Send what nobody received, and settle it. No turn of the conversation runs meanwhile: its entry is there."""
        settled = []
        for outgoing in self._outbox.open():
            async with self._conversations.alone(outgoing.conversation):
                if not self._outbox.send_again(outgoing):
                    continue
                settlement = await self._ledger.settle(
                    agent_handle=self._seat, conversation_key=outgoing.conversation, work_key=outgoing.work_key
                )
                if settlement.failure is None:
                    self._outbox.mark(outgoing, State.DELIVERED)
                self._narrator.say(outgoing.conversation, f"delivered after all, {about_settlement(settlement)}")
                settled.append({"work_key": outgoing.work_key, "outcome": settlement.outcome})
        return {"delivered": settled, "unsent": len(self._outbox.open())}
