"""A block read back by a second mind: strict, so that a line which the sidecar did not write is an error."""

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tests.domain.call_reader import Notice, ReadCall, read_call, read_notice

#: The lines that are still to be read, each with its line break.
Pieces: TypeAlias = deque[tuple[str, str]]

_HEADING: Final = re.compile(r'### (\S+) \(turn (".*"|[\w.:/@+-]+)\)')
_ACCOUNT: Final = re.compile(r"### (\d+) older turn\(s\), condensed")
_OMITTED: Final = re.compile(r"- \(\+(\d+) further read call\(s\) omitted\)")
_LEFT_OUT: Final = re.compile(r"- \(\+(\d+) still older turn\(s\) left out, (\d+) of them replied\)")
_NO_NOTE: Final = " (no note)"
_NAMED: Final = re.compile(
    r"The newest turn is too long for this prompt: (\d+) of its fields stand by size and digest alone\."
)
_LOST: Final = re.compile(r"(\d+) earlier turn\(s\) (are no longer kept|could not be read)\.")

_LABELS: Final = {
    "Triggered by:": "trigger",
    "You set out to:": "intent",
    "You called:": "calls",
    "You replied:": "reply",
    "You did NOT reply: nobody received this text.": "unsent",
    "You did NOT reply: nobody received anything.": "unsent",
    "Reviewer, on what landed:": "completed_work",
    "You ended that turn blocked:": "blocked_on",
}
_ENDED: Final = "Turn ended: "


@dataclass
class ReadEntry:
    """One entry's heading and sections. A section holds its text, or the notice that names it."""

    completed_at: str
    short_id: str
    sections: dict[str, str | Notice] = field(default_factory=dict)
    calls: list[ReadCall] = field(default_factory=list)
    reads_omitted: int = 0
    decision: str = "done"


@dataclass
class ReadBlock:
    """A whole block. `items` are the account's lines, without the marker, and `notes` the words below each, if any."""

    headings: list[str] = field(default_factory=list)
    entries: list[ReadEntry] = field(default_factory=list)
    account_of: int = 0
    left_out: int = 0
    left_out_replied: int = 0
    items: list[str] = field(default_factory=list)
    notes: list[str | None] = field(default_factory=list)
    no_longer_kept: int = 0
    unreadable: int = 0
    named: int = 0


def read_block(text: str, preamble: str) -> ReadBlock:
    """The block behind its heading and contract. Raises `ValueError` at the first line that no rule explains."""
    if not text.startswith(preamble):
        raise ValueError(text[: len(preamble)])
    pieces = _pieces(text[len(preamble) :].removeprefix("\n\n"))
    block = ReadBlock(headings=[preamble.split("\n")[0]])
    while pieces:
        _section(block, pieces)
    return block


def _pieces(text: str) -> Pieces:
    """The lines as (line, its break), at every line break that Unicode knows."""
    cut = ((whole, whole.splitlines()[0]) for whole in text.splitlines(keepends=True))
    return deque((line, whole[len(line) :]) for whole, line in cut)


def _section(block: ReadBlock, pieces: Pieces) -> None:
    line, _ = pieces.popleft()
    if line == "":
        return
    if line.startswith("### "):
        block.headings.append(line)
        _headed(block, line, pieces)
    elif block.entries:
        _labelled(block.entries[-1], line, pieces)
    else:
        _noticed(block, line)


def _headed(block: ReadBlock, line: str, pieces: Pieces) -> None:
    if account := _ACCOUNT.fullmatch(line):
        if block.entries or block.account_of:
            raise ValueError(line)
        block.account_of = int(account[1])
        pieces.popleft()
        _items(block, pieces)
    elif heading := _HEADING.fullmatch(line):
        block.entries.append(ReadEntry(heading[1], heading[2]))
    else:
        raise ValueError(line)


def _items(block: ReadBlock, pieces: Pieces) -> None:
    if pieces and (found := _LEFT_OUT.fullmatch(pieces[0][0])):
        block.left_out, block.left_out_replied = int(found[1]), int(found[2])
        pieces.popleft()
    while pieces and pieces[0][0].startswith("- "):
        item = pieces.popleft()[0].removeprefix("- ")
        block.items.append(item)
        block.notes.append(None if item.endswith(_NO_NOTE) else _words(pieces))


def _words(pieces: Pieces) -> str:
    if not (pieces and pieces[0][0].startswith("| ")):
        raise ValueError("an item has neither a note nor the word that it has none")
    return _quoted(pieces)


def _noticed(block: ReadBlock, line: str) -> None:
    if lost := _LOST.fullmatch(line):
        count = int(lost[1])
        if lost[2] == "are no longer kept":
            block.no_longer_kept = count
        else:
            block.unreadable = count
    elif named := _NAMED.fullmatch(line):
        block.named = int(named[1])
    else:
        raise ValueError(line)


def _labelled(entry: ReadEntry, line: str, pieces: Pieces) -> None:
    if line.startswith(_ENDED):
        entry.decision = line.removeprefix(_ENDED)
        return
    name = _LABELS[line]
    if name in entry.sections:
        raise ValueError(line)
    if pieces and pieces[0][0].startswith("(") and pieces[0][0] != "(none)":
        entry.sections[name] = read_notice(pieces.popleft()[0])
    elif name == "calls":
        entry.sections[name] = ""
        _calls(entry, pieces)
    else:
        entry.sections[name] = _quoted(pieces)


def _quoted(pieces: Pieces) -> str:
    """The text behind the prefixes, to the last line break but the one that ends the section."""
    taken = []
    while pieces and pieces[0][0].startswith("| "):
        taken.append(pieces.popleft())
    if taken and taken[-1][1] not in ("\n", ""):
        raise ValueError(taken[-1])
    return "".join(line[2:] + end for line, end in taken[:-1]) + "".join(line[2:] for line, _ in taken[-1:])


def _calls(entry: ReadEntry, pieces: Pieces) -> None:
    if pieces[0][0] == "(none)":
        pieces.popleft()
        return
    lines = _taken(pieces, "- ")
    if omitted := _OMITTED.fullmatch(lines[-1]):
        entry.reads_omitted = int(omitted[1])
        lines.pop()
    entry.calls = [read_call(line) for line in lines]


def _taken(pieces: Pieces, start: str) -> list[str]:
    lines = []
    while pieces and pieces[0][0].startswith(start):
        lines.append(pieces.popleft()[0])
    return lines
