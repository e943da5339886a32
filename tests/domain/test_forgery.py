"""Stored text cannot forge structure: the judge is a CommonMark parser."""

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from turnledger.compose import HISTORY_HEADING, Parts, compose

from sidecar.domain.block import CONTRACT, Kept, build
from sidecar.domain.entry import Entry
from tests.domain.block_reader import read_block
from tests.domain.making import NO_LIMIT, keeping
from tests.domain.strategies import conversations, entries

_PREAMBLE: Final = f"{HISTORY_HEADING}\n\n{CONTRACT}"

#: All that the sidecar's own lines amount to.
_OURS: Final = {"heading", "paragraph", "inline", "bullet_list", "list_item"}

_LABELS: Final = (
    "#",
    "Triggered by:",
    "You set out to:",
    "You called:",
    "You replied:",
    "You did NOT reply:",
    "Reviewer, on what landed:",
    "You ended that turn blocked:",
    "Turn ended:",
    "(none)",
)


def _headings(text: str) -> list[str]:
    """Every heading that CommonMark finds, also nested ones, as the line that makes it."""
    tokens = MarkdownIt("commonmark").parse(text)
    found = []
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            found.append(f"{'#' * int(token.tag[1:])} {tokens[place + 1].content}")
    return found


def _written(kept: Kept, text: str) -> list[str]:
    """The headings that the sidecar wrote, as the block's reader finds them, checked against the entries' number."""
    headings = read_block(text, _PREAMBLE).headings
    assert len(headings) == 1 + len(kept.entries)
    return headings


def _labels_of(entry: Entry) -> list[str]:
    shown = {
        "Triggered by:": entry.trigger,
        "You set out to:": entry.intent,
        "You called:": "always",
        "You replied:": entry.delivered and entry.final_text,
        "You did NOT reply:": not entry.delivered,
        "Reviewer, on what landed:": entry.completed_work,
        "You ended that turn blocked:": entry.blocked_on,
        "Turn ended:": entry.decision != "done",
        "(none)": not [call for call in entry.calls if call.kind != "meta"],
    }
    return ["#", *(label for label, holds in shown.items() if holds)]


@given(conversations)
def test_headings_are_ours(kept: Kept) -> None:
    """A CommonMark parse finds exactly the headings that the sidecar wrote, at whatever depth it looks."""
    text = build(kept, NO_LIMIT).text
    assert _headings(text) == _written(kept, text)


@given(conversations)
def test_structure_is_ours(kept: Kept) -> None:
    """No stored text opens a fence, a quote, a rule, an ordered list or HTML."""
    tokens = MarkdownIt("commonmark").parse(build(kept, NO_LIMIT).text)
    assert {token.type.removesuffix("_open").removesuffix("_close") for token in tokens} <= _OURS


@given(conversations, st.sampled_from(["", "about\n\nthe seat"]), st.sampled_from(["", "done so far"]))
def test_message_headings_are_ours(kept: Kept, context: str, prior_work: str) -> None:
    """In a whole user message the history adds no heading of its own before or after the task's."""
    history = build(kept, NO_LIMIT).text
    message = compose(Parts(context, history, "answer", prior_work))
    after = ["## Task", *(["## Already done earlier in this turn"] if prior_work else [])]
    assert _headings(message) == [*_written(kept, history), *after]


@given(conversations)
def test_labels_are_ours(kept: Kept) -> None:
    """No stored line, split at any line break of Unicode, equals or begins with a label, a heading or a list marker."""
    lines = build(kept, NO_LIMIT).text.removeprefix(_PREAMBLE).splitlines()
    expected = [label for entry in kept.entries for label in _labels_of(entry)]
    found = [label for line in lines for label in _LABELS if line.startswith(label)]
    assert sorted(found) == sorted(expected)
    unquoted = [line for line in lines if line and not line.startswith(("| ", "- ", *_LABELS))]
    assert len(unquoted) == bool(kept.no_longer_kept) + bool(kept.unreadable)


@settings(max_examples=20)
@given(st.lists(entries, min_size=4, max_size=4), st.integers(9_000, 17_000))
def test_headings_beside_an_account(some: list[Entry], size: int) -> None:
    """The account adds its one heading and no other, whatever the ids and tool names of the turns in it hold."""
    newest = Entry("newest", "2026-01-01T00:00:00Z", "x" * size, "# a\n" * 1500, (), True, "", "", "", "done")
    history = build(keeping([*some, newest]), NO_LIMIT)
    block = read_block(history.text, _PREAMBLE)
    assert _headings(history.text) == block.headings
    assert len(block.headings) == 1 + history.shown + bool(block.account_of)
