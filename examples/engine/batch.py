"""A batch: triggers of one partition that one turn answers together.

Take from it: everything that names the turn is derived from the batch (conversation, work key, the text), so a batch
that is redelivered unchanged is the same work, and the ledger can tell.
"""

from dataclasses import dataclass

from turnledger.identity import batch_identity, digest, work_key

from examples.engine.trigger import Trigger


@dataclass(frozen=True, slots=True)
class Batch:
    """A sealed batch: its triggers never change again. `saved` and `verdict` are those of a suspended turn."""

    number: int
    partition: str
    triggers: tuple[Trigger, ...]
    saved: str | None = None
    verdict: bool | None = None

    @property
    def conversation(self) -> str:
        """Whose history the turn gets. In a direct message, two partitions share one."""
        return batch_identity(trigger.identity for trigger in self.triggers).conversation_key

    @property
    def work_key(self) -> str:
        return key_of(self.triggers)

    @property
    def text(self) -> str:
        """All messages whole, each with its sender and time: the task of the turn, and its trigger in the ledger."""
        return digest([trigger.message for trigger in self.triggers])

    @property
    def waits_for_a_person(self) -> bool:
        """Suspended, and nobody has decided yet."""
        return self.saved is not None and self.verdict is None


def key_of(triggers: tuple[Trigger, ...]) -> str:
    """The work key of a turn that these triggers start."""
    return work_key(trigger.identity.trigger_id for trigger in triggers)
