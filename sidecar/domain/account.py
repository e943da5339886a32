"""The account: what stands for the older turns once they no longer fit whole.

Its facts are the sidecar's own, taken from the entry and never from a model: when, which run, whether anybody was told,
how it ended, and which writes ran. The words below them are the entry's note, if it has one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sidecar.domain.call_lines import write_names
from sidecar.domain.entry import DONE, Entry, Recorded
from sidecar.domain.text import quote, size_of

_SEPARATOR = "\n"


@dataclass(frozen=True, slots=True)
class Account:
    """The finished account, heading included, and how many turns it tells of and leaves out."""

    text: str
    condensed: int
    left_out: int


def write_account(recorded: Sequence[Recorded], short_ids: dict[str, str], room: int) -> Account:
    """The account of the entries, oldest first, within `room` bytes of UTF-8, its heading and left-out line among them.

    What does not fit is left out oldest first, and counted. Where not even the heading and that line fit, they stand
    all the same: a turn that is left out is never left out in silence.
    """
    items = list(_newest_within((_item(each, short_ids[each.entry.turn_id]) for each in reversed(recorded)), room))
    if len(items) == len(recorded) and size_of(text := _assemble(recorded, items)) <= room:
        return Account(text, len(items), 0)
    # One at least is left out. Its line is the longest where all are.
    items = list(_newest_within(items[: len(recorded) - 1], room - size_of(_assemble(recorded, []))))
    return Account(_assemble(recorded, items), len(items), len(recorded) - len(items))


def _assemble(recorded: Sequence[Recorded], newest_first: Sequence[str]) -> str:
    """Heading, the line for what is left out, and the newest items."""
    head = [f"### {len(recorded)} older turn(s), condensed", ""]
    left_out = recorded[: len(recorded) - len(newest_first)]
    if left_out:
        replied = sum(_replied(each.entry) for each in left_out)
        head.append(f"- (+{len(left_out)} still older turn(s) left out, {replied} of them replied)")
    return _SEPARATOR.join([*head, *reversed(newest_first)])


def _newest_within(newest_first: Iterable[str], room: int) -> Iterator[str]:
    """The newest items that fit, each with the line break before it."""
    for item in newest_first:
        room -= size_of(item) + len(_SEPARATOR)
        if room < 0:
            break
        yield item


def _item(recorded: Recorded, short_id: str) -> str:
    """The facts on one line, then the note as quoted text: whatever a model wrote stands below what is so."""
    entry = recorded.entry
    writes = write_names(entry.calls)
    facts = [*_outcome(entry), f"writes: {writes}" if writes else "no writes"]
    line = f"- {entry.completed_at} (turn {short_id}): {'; '.join(facts)}"
    return f"{line}{_SEPARATOR}{quote(recorded.note)}" if recorded.note else f"{line} (no note)"


def _outcome(entry: Entry) -> list[str]:
    replied = "replied" if _replied(entry) else "replied nothing" if entry.delivered else "did NOT reply"
    blocked = ["blocked"] if entry.blocked_on else []
    ended = [f"ended {entry.decision}"] if entry.decision != DONE else []
    return [replied, *blocked, *ended]


def _replied(entry: Entry) -> bool:
    return entry.delivered and bool(entry.final_text)
