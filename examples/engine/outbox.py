"""The outbox: final texts on their way to people, over a channel that can fail.

Take from it: a text is on disk before it is sent, and the run after a crash sends that text and no other, so what the
ledger calls the reply is what the person got. What failed is Unsent in the ledger, and is sent later, then settled:
until then the next turn is told that nobody received it.
"""

import json
import sqlite3
from dataclasses import dataclass
from enum import StrEnum

from turnledger import Reply, Unsent

from examples.engine.faults import Faults
from examples.engine.outside import Outside


class State(StrEnum):
    """How far a text is."""

    NEW = "new"
    DELIVERED = "delivered"
    #: Nobody received it, and the ledger says so.
    UNSENT = "unsent"
    #: It was received, and the ledger is yet to be told.
    UNSETTLED = "unsettled"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One turn's final text."""

    work_key: str
    conversation: str
    text: str
    state: State


class Outbox:
    """The texts in the engine's state file, and the chat that they go to."""

    def __init__(self, db: sqlite3.Connection, chat: Outside, faults: Faults) -> None:
        self._db = db
        self._chat = chat
        self._faults = faults

    def deliver(self, work_key: str, conversation: str, text: str) -> Reply | Unsent:
        """Send a turn's final text; answers what it became. An earlier run's text under the same key stands."""
        self._db.execute(
            "INSERT INTO outgoing VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (work_key, conversation, json.dumps(text), State.NEW),
        )
        outgoing = self.find(work_key)
        if outgoing.state in (State.NEW, State.UNSENT):
            sent = self._send(outgoing)
            self.mark(outgoing, State.DELIVERED if sent else State.UNSENT)
            if not sent:
                return Unsent(outgoing.text)
        self._faults.reached("delivery")
        return Reply(outgoing.text)

    def send_again(self, outgoing: Outgoing) -> bool:
        """Try an unsent text once more; answers whether it has arrived, so that the ledger is owed a settle."""
        if outgoing.state is State.UNSENT and self._send(outgoing):
            self.mark(outgoing, State.UNSETTLED)
        return self.find(outgoing.work_key).state is State.UNSETTLED

    def mark(self, outgoing: Outgoing, state: State) -> None:
        """Note how far it is."""
        self._db.execute("UPDATE outgoing SET state = ? WHERE work_key = ?", (state, outgoing.work_key))

    def find(self, work_key: str) -> Outgoing:
        """The text of a turn that has one."""
        row = self._db.execute("SELECT * FROM outgoing WHERE work_key = ?", (work_key,)).fetchone()
        return _outgoing(row)

    def open(self) -> list[Outgoing]:
        """What is not delivered, or not settled."""
        states = (State.UNSENT, State.UNSETTLED)
        return [_outgoing(row) for row in self._db.execute("SELECT * FROM outgoing WHERE state IN (?, ?)", states)]

    def _send(self, outgoing: Outgoing) -> bool:
        if self._faults.delivery_fails():
            return False
        self._chat.happen(f"{outgoing.work_key}:reply", "reply", to=outgoing.conversation, text=outgoing.text)
        return True


def _outgoing(row: tuple[str, str, str, str]) -> Outgoing:
    work_key, conversation, text, state = row
    return Outgoing(work_key, conversation, json.loads(text), State(state))
