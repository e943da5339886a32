"""What a block must say of the turns that were played, checked by a reader that shares nothing with the renderer."""

from turnledger import CallKind, History
from turnledger.compose import HISTORY_HEADING

from sidecar.domain.block import CONTRACT
from sidecar.domain.limits import BLOCK_BYTES, READS_SHOWN, WHOLE_BYTES
from tests.domain.block_reader import ReadBlock, ReadEntry, read_block
from tests.replay.turns import Turn

PREAMBLE = f"{HISTORY_HEADING}\n\n{CONTRACT}"


def check_block(history: History, turns: list[Turn], max_entries: int) -> ReadBlock:
    """Assert that the block holds exactly the newest entries, in order, word for word, and counts all others."""
    block = read_block(history.text, PREAMBLE)
    kept = turns[-max_entries:]
    assert history.shown + history.condensed + history.left_out == len(kept)
    assert (history.no_longer_kept, history.unreadable) == (len(turns) - len(kept), 0)
    assert block.no_longer_kept == history.no_longer_kept
    assert len(block.entries) == history.shown
    for entry, turn in zip(block.entries, kept[len(kept) - history.shown :], strict=True):
        check_entry(entry, turn)
    assert (len(block.items), block.left_out) == (history.condensed, history.left_out)
    for item, turn in zip(block.items, kept[history.left_out : history.left_out + history.condensed], strict=True):
        check_item(item, turn)
    check_bound(history)
    return block


def check_entry(entry: ReadEntry, turn: Turn) -> None:
    """Assert that the entry is the turn's, each text recovered exactly."""
    final = "reply" if turn.delivered else "unsent"
    texts = {
        "trigger": turn.trigger,
        "intent": turn.intent,
        final: turn.final_text,
        "completed_work": turn.completed_work,
        "blocked_on": turn.blocked_on,
    }
    said = {name: text for name, text in entry.sections.items() if name != "calls"}
    assert said == {name: text for name, text in texts.items() if text or name == "unsent"}
    assert turn.turn_id.startswith(entry.short_id)
    assert len(entry.short_id) >= 8
    assert entry.decision == turn.decision
    reads = [call for call in turn.calls if call.kind is CallKind.READ]
    shown = [call for call in turn.calls if call.kind is CallKind.WRITE or call in reads[:READS_SHOWN]]
    assert [(call.name, call.read, call.failed) for call in entry.calls] == [
        (call.name, call.kind is CallKind.READ, call.error is not None) for call in shown
    ]
    assert entry.reads_omitted == max(0, len(reads) - READS_SHOWN)


def check_item(item: str, turn: Turn) -> None:
    """Assert that the account's facts of the turn are the turn's."""
    told = "replied" if turn.final_text else "replied nothing"
    facts = [told if turn.delivered else "did NOT reply"]
    facts += ["blocked"] if turn.blocked_on else []
    facts += [f"ended {turn.decision}"] if turn.decision != "done" else []
    assert item.partition("): ")[2].startswith("; ".join(facts) + "; ")
    for call in turn.calls:
        assert (call.name in item) is (call.kind is CallKind.WRITE) or call.name in item


def check_bound(history: History) -> None:
    """Assert that nothing but the newest entry's own size takes the block over its bound."""
    bounded = history.text[history.text.index("\n### ") + 1 :]
    newest = len(history.text[history.text.rindex("\n### ") + 1 :].encode())
    assert len(bounded.encode()) - max(0, newest - WHOLE_BYTES) <= BLOCK_BYTES
