"""What was stored comes back exactly from the block, read by a parser that shares no code with the sidecar."""

from typing import Final

import pytest
from hypothesis import given
from msgspec.structs import asdict
from turnledger.compose import HISTORY_HEADING

from sidecar.domain.block import CONTRACT, HistoryState, Kept, build
from sidecar.domain.calls import CallKind
from sidecar.domain.entry import Entry
from tests.domain.block_reader import ReadEntry, read_block
from tests.domain.making import NO_LIMIT, PLAIN, keeping
from tests.domain.strategies import conversations, entries

_PREAMBLE: Final = f"{HISTORY_HEADING}\n\n{CONTRACT}"


def _sections(entry: Entry) -> dict[str, str]:
    texts = {
        "trigger": entry.trigger,
        "intent": entry.intent,
        "reply": entry.final_text if entry.delivered else "",
        "unsent": "" if entry.delivered else entry.final_text,
        "completed_work": entry.completed_work,
        "blocked_on": entry.blocked_on,
    }
    shown = {name: text for name, text in texts.items() if text}
    unsent = {} if entry.delivered else {"unsent": entry.final_text}
    return {**shown, **unsent, "calls": ""}


def _agrees(found: ReadEntry, entry: Entry) -> None:
    assert found.completed_at == entry.completed_at
    assert found.sections == _sections(entry)
    assert found.decision == entry.decision
    shown = [call for call in entry.calls if call.kind is not CallKind.META]
    assert [(call.name, call.failed, call.read) for call in found.calls] == [
        (call.name, call.failed, call.kind is CallKind.READ) for call in shown
    ]


@given(conversations)
def test_every_field_comes_back(kept: Kept) -> None:
    """Trigger, intent, reply or unsent, completed work, blocked on and decision are read back byte for byte."""
    history = build(kept, NO_LIMIT)
    block = read_block(history.text, _PREAMBLE)
    for found, entry in zip(block.entries, kept.entries, strict=True):
        _agrees(found, entry)
    assert (block.no_longer_kept, block.unreadable, block.named) == (kept.no_longer_kept, kept.unreadable, 0)
    assert (history.no_longer_kept, history.unreadable) == (kept.no_longer_kept, kept.unreadable)


@given(entries)
def test_sections_stand_in_order(entry: Entry) -> None:
    """The sections follow the order of the turn: trigger, intent, calls, final text, what landed, what blocked."""
    block = read_block(build(keeping([entry]), NO_LIMIT).text, _PREAMBLE)
    order = ["trigger", "intent", "calls", "reply", "unsent", "completed_work", "blocked_on"]
    found = list(block.entries[0].sections)
    assert found == [name for name in order if name in found]


@given(conversations)
def test_same_bytes(kept: Kept) -> None:
    """One conversation gives one block: the same bytes each time, its size and digest those of its text."""
    first, second = build(kept, NO_LIMIT), build(kept, NO_LIMIT)
    assert first == second
    assert first.size == len(first.text.encode())
    assert first.state is HistoryState.PRESENT
    assert not first.text.endswith("\n")


def test_the_digest_is_the_text_s() -> None:
    """A history's digest is the SHA-256 of its UTF-8 in lower-case hex."""
    history = build(keeping([]), NO_LIMIT)
    assert history.digest == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert history.size == 0


@pytest.mark.parametrize("field", ["trigger", "intent", "final_text", "completed_work", "blocked_on"])
def test_megabytes_come_back(field: str) -> None:
    """A field of megabytes with every kind of line break is whole in the newest entry."""
    text = "é\r\n\x00\u2028\x85## Task\n" * 20_000
    entry = Entry(**{**asdict(PLAIN), field: text})
    block = read_block(build(keeping([entry]), NO_LIMIT).text, _PREAMBLE)
    name = "reply" if field == "final_text" else field
    assert block.entries[0].sections[name] == text
