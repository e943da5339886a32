"""The inbox: triggers wait per partition, are sealed into batches, and leave when their turn is over.

Take from it three rules. A trigger is on disk before its webhook is answered. A sealed batch is redelivered after a
crash exactly as it was, since its work key is what the ledger recognises it by. A trigger that comes again is dropped
for good only when its turn was completed and acknowledged; until then it is one and the same row.
"""

import sqlite3
from enum import StrEnum
from typing import Any

from examples.engine.batch import Batch, key_of
from examples.engine.trigger import Trigger


class Arrival(StrEnum):
    """What became of a webhook."""

    NEW = "new"
    #: It came before and is waiting, or its turn is under way: nothing to add.
    WAITING = "waiting already"
    #: Its turn was completed and acknowledged.
    OVER = "answered before"


class Inbox:
    """The triggers and batches of one engine, in its state file."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def accept(self, trigger: Trigger) -> Arrival:
        """Keep a trigger, unless it is here. On return it is on disk.

        One happening may come twice and name its conversation only the second time (Jira Server's comments): while the
        first still waits, the one that knows where it belongs takes its place.
        """
        identity = trigger.identity
        changed = self._db.execute(
            "INSERT INTO triggers (trigger_id, place, partition, body)"
            " VALUES (?, (SELECT coalesce(max(place), 0) + 1 FROM triggers), ?, ?)"
            " ON CONFLICT (trigger_id) DO UPDATE SET partition = excluded.partition, body = excluded.body"
            " WHERE batch IS NULL AND partition LIKE 'event:%' AND excluded.partition NOT LIKE 'event:%'",
            (identity.trigger_id, identity.partition_key, trigger.dump()),
        ).rowcount
        if changed:
            return Arrival.NEW
        over = "SELECT over FROM triggers JOIN batches ON number = batch WHERE trigger_id = ?"
        return Arrival.OVER if self._one(over, identity.trigger_id) else Arrival.WAITING

    def partitions(self) -> list[str]:
        """Where there is something to do: asked at the start, when a crash may have left work."""
        rows = self._db.execute(
            "SELECT partition FROM triggers WHERE batch IS NULL UNION SELECT partition FROM batches WHERE NOT over"
        )
        return [partition for (partition,) in rows]

    def unfinished(self, partition: str) -> Batch | None:
        """The partition's batch whose turn is not over, as it was sealed."""
        row = self._db.execute(
            "SELECT number, saved, verdict FROM batches WHERE partition = ? AND NOT over", (partition,)
        ).fetchone()
        if row is None:
            return None
        number, saved, verdict = row
        bodies = self._db.execute("SELECT body FROM triggers WHERE batch = ? ORDER BY place", (number,))
        triggers = tuple(Trigger.load(body) for (body,) in bodies)
        return Batch(number, partition, triggers, saved, None if verdict is None else bool(verdict))

    def seal(self, partition: str) -> Batch | None:
        """Make a batch of what waits in the partition; None if nothing does."""
        waiting = "SELECT body FROM triggers WHERE partition = ? AND batch IS NULL ORDER BY place"
        triggers = tuple(Trigger.load(body) for (body,) in self._db.execute(waiting, (partition,)))
        if not triggers:
            return None
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            number = self._db.execute(
                "INSERT INTO batches (partition, work_key) VALUES (?, ?)", (partition, key_of(triggers))
            ).lastrowid
            self._db.execute("UPDATE triggers SET batch = ? WHERE partition = ? AND batch IS NULL", (number, partition))
        return self.unfinished(partition)

    def suspend(self, batch: Batch, saved: str) -> None:
        """Keep a suspended turn with its batch, until a person decides."""
        self._db.execute("UPDATE batches SET saved = ?, verdict = NULL WHERE number = ?", (saved, batch.number))

    def decide(self, work_key: str, *, approved: bool) -> str | None:
        """Note what a person decided; answers the partition that may go on, or None if no turn waits under that key."""
        waits = "work_key = ? AND saved IS NOT NULL AND verdict IS NULL AND NOT over"
        partition = self._one(f"SELECT partition FROM batches WHERE {waits}", work_key)  # noqa: S608  a constant
        self._db.execute(f"UPDATE batches SET verdict = ? WHERE {waits}", (approved, work_key))  # noqa: S608
        return None if partition is None else str(partition)

    def acknowledge(self, batch: Batch) -> None:
        """The turn is over: its triggers are dropped when they come again."""
        self._db.execute("UPDATE batches SET over = 1, saved = NULL WHERE number = ?", (batch.number,))

    def counts(self) -> dict[str, Any]:
        """How many triggers wait, and batches run, are suspended (by work key) and are over."""
        suspended = self._db.execute("SELECT work_key FROM batches WHERE saved IS NOT NULL AND verdict IS NULL")
        running = "SELECT count(*) FROM batches WHERE NOT over AND (saved IS NULL OR verdict IS NOT NULL)"
        return {
            "waiting": self._one("SELECT count(*) FROM triggers WHERE batch IS NULL"),
            "running": self._one(running),
            "suspended": [key for (key,) in suspended],
            "over": self._one("SELECT count(*) FROM batches WHERE over"),
        }

    def _one(self, query: str, *values: object) -> Any:
        row = self._db.execute(query, values).fetchone()
        return None if row is None else row[0]
