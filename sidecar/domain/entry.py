"""One turn's entry, and its text in the block."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sidecar.domain import call_lines
from sidecar.domain.calls import Call, rewritten
from sidecar.domain.instructions import INSTRUCTIONS_VERSION
from sidecar.domain.limits import TURN_ID_CHARACTERS
from sidecar.domain.payload import fingerprint, named_notice
from sidecar.domain.text import quote, size_of, word_or_quoted

#: Of what an entry looks like in the block, its heading apart. Any change of that is a new version: a body that was
#: kept under another one is not used any more.
RENDERING_VERSION: Final = 1

#: Past these an entry is large: rendering it takes more than some milliseconds.
_LARGE_CHARACTERS: Final = 256 * 1024
_MANY_CALLS: Final = 500

#: The decision of a turn that simply ended; the only one that is not shown.
DONE: Final = "done"


class Note(Struct, frozen=True, gc=False):
    """What the auxiliary model made of one entry, and of which version of it under which instructions."""

    text: str
    entry_version: int
    instructions_version: int


class Entry(Struct, frozen=True, gc=False):
    """What one completed turn left.

    Texts are verbatim and of any length. `completed_at` is RFC 3339 UTC and for the reader alone. `delivered` says
    whether anybody received `final_text`.
    """

    turn_id: str
    completed_at: str
    trigger: str
    intent: str
    calls: tuple[Call, ...]
    delivered: bool
    final_text: str
    completed_work: str
    blocked_on: str
    decision: str
    note: Note | None = None

    @property
    def is_large(self) -> bool:
        """Whether to render it takes longer than an event loop should be held for."""
        texts = (self.trigger, self.intent, self.final_text, self.completed_work, self.blocked_on)
        return len(self.calls) > _MANY_CALLS or sum(map(len, texts)) > _LARGE_CHARACTERS


class EntryRef(Struct, frozen=True, gc=False):
    """Where an entry is kept, and in which version. Row ids are this store's alone, entry ids the whole fleet's."""

    row_id: int
    entry_id: str
    version: int


class Recorded(Struct, frozen=True, gc=False):
    """An entry as it is kept, and its body where that was kept beside it under the present rendering, else empty."""

    ref: EntryRef
    entry: Entry
    body: str = ""

    @property
    def note(self) -> str:
        """The note's text, if it was made of this version of the entry under the present instructions; else empty."""
        note = self.entry.note
        current = (self.ref.version, INSTRUCTIONS_VERSION)
        return note.text if note and (note.entry_version, note.instructions_version) == current else ""

    def text(self, short_id: str) -> str:
        """The entry in the block."""
        return _headed(self.entry, short_id, self.body or entry_body(self.entry))


class Field(StrEnum):
    """The parts of an entry that have no bound of their own."""

    TRIGGER = "trigger"
    INTENT = "intent"
    CALLS = "calls"
    FINAL_TEXT = "final text"
    COMPLETED_WORK = "completed work"
    BLOCKED_ON = "blocked on"


def entry_text(entry: Entry, short_id: str, named: frozenset[Field] = frozenset()) -> str:
    """The entry in the block: its heading, then its body. The fields in `named` stand by size and digest."""
    return _headed(entry, short_id, entry_body(entry, named))


def entry_body(entry: Entry, named: frozenset[Field] = frozenset()) -> str:
    """The entry's sections, apart by one blank line, with no line break at the end."""
    sections = [_section(label, field, text, named) for field, label, text in _labelled(entry)]
    if entry.decision != DONE:
        sections.append(f"Turn ended: {entry.decision}")
    return "\n\n".join(sections)


def rendered_bytes(entry: Entry, body: str) -> int:
    """What the entry takes in a block, in bytes of UTF-8: a little more where its id must be shown longer there."""
    return size_of(_headed(entry, short_ids([entry.turn_id])[entry.turn_id], body))


def alone_within(recorded: Recorded, limit: int) -> str:
    """The entry's text alone, within `limit` bytes if naming its own largest fields can make it so."""
    entry = recorded.entry
    short_id = short_ids([entry.turn_id])[entry.turn_id]
    text = recorded.text(short_id)
    if size_of(text) <= limit:
        return text
    for named in largest_first(entry):
        text = entry_text(entry, short_id, named)
        if size_of(text) <= limit:
            break
    return text


def largest_first(entry: Entry) -> list[frozenset[Field]]:
    """The sets of fields to name: the largest (bytes as rendered), the two largest, and so on."""
    sizes = {field: size_of(_content(field, text)) for field, _, text in _labelled(entry)}
    present = sorted(sizes, key=sizes.__getitem__, reverse=True)
    return [frozenset(present[: count + 1]) for count in range(len(present))]


def condense(entry: Entry, sha256: str, rewrite: str) -> Entry | None:
    """The entry with a rewrite in place of what is named by the digest, or None where nothing is."""
    changed = replace(entry, calls=tuple(rewritten(call, sha256, rewrite) for call in entry.calls))
    return None if changed == entry else changed


def short_ids(turn_ids: Sequence[str]) -> dict[str, str]:
    """What to show of each turn id: at least 8 characters, more where two would look alike.

    Time-ordered ids share their first 8 characters for about a minute. In sorted order an id's closest relatives are
    its neighbours, so those alone decide how much of it is needed.
    """
    ordered = sorted(set(turn_ids))
    shared = [0, *(_shared_prefix(one, other) for one, other in pairwise(ordered)), 0]
    return {
        turn_id: word_or_quoted(turn_id[: max(TURN_ID_CHARACTERS, shared[place] + 1, shared[place + 1] + 1)])
        for place, turn_id in enumerate(ordered)
    }


def _headed(entry: Entry, short_id: str, body: str) -> str:
    return f"### {entry.completed_at} (turn {short_id})\n\n{body}"


def _labelled(entry: Entry) -> Iterator[tuple[Field, str, str]]:
    """The sections to show, in order: field, label, and the text as it is before it is quoted.

    An empty field has none, but for a reply that was not sent.
    """
    if entry.trigger:
        yield Field.TRIGGER, "Triggered by:", entry.trigger
    if entry.intent:
        yield Field.INTENT, "You set out to:", entry.intent
    yield Field.CALLS, "You called:", "\n".join(call_lines.lines(entry.calls))
    if not entry.delivered:
        received = "this text" if entry.final_text else "anything"
        yield Field.FINAL_TEXT, f"You did NOT reply: nobody received {received}.", entry.final_text
    elif entry.final_text:
        yield Field.FINAL_TEXT, "You replied:", entry.final_text
    if entry.completed_work:
        yield Field.COMPLETED_WORK, "Reviewer, on what landed:", entry.completed_work
    if entry.blocked_on:
        yield Field.BLOCKED_ON, "You ended that turn blocked:", entry.blocked_on


def _section(label: str, field: Field, text: str, named: frozenset[Field]) -> str:
    content = _content(field, text, named)
    return f"{label}\n{content}" if content else label


def _content(field: Field, text: str, named: frozenset[Field] = frozenset()) -> str:
    is_calls = field is Field.CALLS
    if not text and not is_calls:
        return ""
    if field in named:
        return named_notice(*fingerprint(text))
    return (text or "(none)") if is_calls else quote(text)


def _shared_prefix(one: str, other: str) -> int:
    """How many characters they share; 0 where that is less than what is shown in any case."""
    if one[:TURN_ID_CHARACTERS] != other[:TURN_ID_CHARACTERS]:
        return 0
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))
