"""The account: what stands for the older turns once they no longer fit whole.

Its facts are the sidecar's own, taken from the entry and never from a model: when, which run, whether anybody was told,
how it ended, and which writes ran.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.domain.calls import write_names
from sidecar.domain.entry import DONE, Entry
from sidecar.domain.text import size_of

_SEPARATOR = "\n"


@dataclass(frozen=True, slots=True)
class Account:
    """The finished account, heading included, and how many turns it tells of and leaves out."""

    text: str
    condensed: int
    left_out: int


def write_account(entries: Sequence[Entry], short_ids: dict[str, str], room: int) -> Account:
    """The account of the entries, oldest first, within `room` bytes of UTF-8, its heading and left-out line among them.

    What does not fit is left out oldest first, and counted. Where not even the heading and that line fit, they stand
    all the same: a turn that is left out is never left out in silence.
    """
    items = [_item(entry, short_ids[entry.turn_id]) for entry in entries]
    kept = _newest_within(items, room - size_of(_assemble(entries, [])))
    if kept < len(items) and len(items) > 0:
        return Account(_assemble(entries, items[len(items) - kept :]), kept, len(items) - kept)
    return Account(_assemble(entries, items), kept, 0)


def _assemble(entries: Sequence[Entry], items: list[str]) -> str:
    """Heading, the line for what is left out, and the newest items."""
    left_out = entries[: len(entries) - len(items)]
    head = [f"### {len(entries)} older turn(s), condensed", ""]
    if left_out:
        replied = sum(_replied(entry) for entry in left_out)
        head.append(f"- (+{len(left_out)} still older turn(s) left out, {replied} of them replied)")
    return _SEPARATOR.join([*head, *items])


def _newest_within(items: Sequence[str], room: int) -> int:
    """How many of the newest items fit, each with the line break before it."""
    fitting = 0
    for item in reversed(items):
        room -= size_of(item) + len(_SEPARATOR)
        if room < 0:
            break
        fitting += 1
    return fitting


def _item(entry: Entry, short_id: str) -> str:
    writes = write_names(entry.calls)
    facts = [*_outcome(entry), f"writes: {writes}" if writes else "no writes"]
    return f"- {entry.completed_at} (turn {short_id}): {'; '.join(facts)} (no note)"


def _outcome(entry: Entry) -> list[str]:
    replied = "replied" if _replied(entry) else "replied nothing" if entry.delivered else "did NOT reply"
    blocked = ["blocked"] if entry.blocked_on else []
    ended = [f"ended {entry.decision}"] if entry.decision != DONE else []
    return [replied, *blocked, *ended]


def _replied(entry: Entry) -> bool:
    return entry.delivered and bool(entry.final_text)
