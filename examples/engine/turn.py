"""One turn, from a batch to its acknowledgement: the file to read, and the only one that runs turns on the ledger.

Take from it the order: History; rounds; deliver; Append; acknowledge. Nothing here has an error path for the sidecar:
a history that cannot be read is a turn without one, and an entry that cannot be written is a turn that is over all the
same.
"""

import asyncio
import uuid
from dataclasses import dataclass
from typing import Final

from turnledger import Ledger, Phase, Turn

from examples.engine.batch import Batch
from examples.engine.faults import Faults
from examples.engine.inbox import Inbox
from examples.engine.model import INTENT, Answer, Call, Model
from examples.engine.narrator import Narrator, quoted
from examples.engine.outbox import Outbox
from examples.engine.suspension import Suspension
from examples.engine.telling import about_history, about_receipt
from examples.engine.tools import ToolFailed, Tools
from examples.engine.work import Work

CONTEXT: Final = "You are Triage. You look after incoming threads: open a ticket once, page on call, answer briefly."
REVIEW: Final = "You are the reviewer. Say in a sentence what landed in this turn."


@dataclass(frozen=True, slots=True)
class Turns:
    """Runs turns of one seat."""

    seat: str
    ledger: Ledger
    inbox: Inbox
    outbox: Outbox
    model: Model
    tools: Tools
    narrator: Narrator
    faults: Faults
    thinking_seconds: float

    async def run(self, batch: Batch) -> None:
        """Run the batch's turn, or take it up where a person's decision left it."""
        turn, work = self._resume(batch) if batch.saved else (await self._begin(batch), Work())
        if turn.already_recorded:
            self._say(batch, "already in the ledger: an earlier run answered this and died; acknowledged, in silence")
            self.inbox.acknowledge(batch)
            return
        last = await self._rounds(turn, batch, work)
        if isinstance(last, Answer):
            await self._end(turn, batch, work, last.text)
        else:
            await self._suspend(turn, batch, work, last)

    async def _begin(self, batch: Batch) -> Turn:
        """History, once, now: not when the batch was sealed, since another turn may have ended in between."""
        turn = await self.ledger.begin(
            agent_handle=self.seat,
            conversation_key=batch.conversation,
            turn_id=str(uuid.uuid4()),
            work_key=batch.work_key,
        )
        self._say(
            batch, f"turn {turn.keys.turn_id[:8]} begins, {len(batch.triggers)} message(s): {about_history(turn)}"
        )
        return turn

    async def _rounds(self, turn: Turn, batch: Batch, work: Work) -> Answer | Call:
        """Rounds until the model answers, or calls what needs a person's yes. Every prompt holds the same block."""
        while True:
            prompt = await turn.user_message(
                phase=Phase.EXECUTE, task=batch.text, context=CONTEXT, prior_work=work.render()
            )
            self.narrator.prompt(batch.conversation, turn.keys.turn_id, Phase.EXECUTE, prompt, first=not work.lines)
            await asyncio.sleep(self.thinking_seconds)
            step = self.model.step(prompt, batch.conversation)
            if isinstance(step, Answer) or self.tools.named(step.name).needs_approval:
                return step
            self._call(turn, batch, work, step)

    def _call(self, turn: Turn, batch: Batch, work: Work, call: Call) -> None:
        """Run a tool, and tell the ledger's turn; what it is told is sent with the turn's Append and not before."""
        error = None
        try:
            outcome = self.tools.use(call.name, call.arguments, batch.work_key)
        except ToolFailed as failed:
            error, outcome = str(failed), f"error: {failed}"
        turn.called(call.name, call.arguments, kind=self.tools.named(call.name).kind, error=error)
        work.add(call.name, call.arguments, outcome)
        self._say(batch, f"  {call.name}({call.arguments}) → {outcome}")

    async def _end(self, turn: Turn, batch: Batch, work: Work, text: str) -> None:
        """Review, deliver, append, acknowledge: in this order."""
        completed_work = await self._review(turn, batch, work)
        outcome = self.outbox.deliver(batch.work_key, batch.conversation, text)
        self._say(batch, f"{type(outcome).__name__}: {quoted(outcome.text)}")
        receipt = await turn.complete(outcome, trigger=batch.text, intent=INTENT, completed_work=completed_work)
        self._say(batch, about_receipt(receipt))
        self.faults.reached("append")
        self.inbox.acknowledge(batch)

    async def _review(self, turn: Turn, batch: Batch, work: Work) -> str:
        """The reviewer's phase gets no block, whoever asks: it judges this turn, and not the earlier ones."""
        prompt = await turn.user_message(phase=Phase.REVIEW, task=REVIEW, prior_work=work.render())
        self.narrator.prompt(batch.conversation, turn.keys.turn_id, Phase.REVIEW, prompt, first=False)
        return self.model.review(prompt)

    async def _suspend(self, turn: Turn, batch: Batch, work: Work, call: Call) -> None:
        """Keep the turn for whoever resumes it. Nothing is recorded: the resumed run will be."""
        self.inbox.suspend(batch, Suspension(turn.save(), work, call).dump())
        receipt = await turn.suspended()
        self._say(batch, f"suspended: {call.name} needs a person's yes; {about_receipt(receipt)}")
        self._say(batch, f"  say it with: POST /approvals/{batch.work_key}")

    def _resume(self, batch: Batch) -> tuple[Turn, Work]:
        """The turn that was suspended, in whatever process this is, and the call that waited."""
        suspension = Suspension.load(batch.saved or "")
        turn, work, call = self.ledger.resume(suspension.turn), suspension.work, suspension.call
        self._say(batch, f"turn {turn.keys.turn_id[:8]} resumes: {about_history(turn)}")
        if batch.verdict:
            self._call(turn, batch, work, call)
        else:
            work.add(call.name, call.arguments, "refused by a person")
        return turn, work

    def _say(self, batch: Batch, text: str) -> None:
        self.narrator.say(batch.conversation, text)
