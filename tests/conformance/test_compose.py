"""Runs the language-neutral vectors of composition against the Python client, its pure function and a whole turn."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from turnledger import BlockingLedger, Deadlines
from turnledger.answers import History, HistoryState
from turnledger.compose import HISTORY_HEADING, PRIOR_WORK_HEADING, TASK_HEADING, Parts, approximate_tokens, compose
from turnledger.saved import SavedTurn, dump
from turnledger.steps import TurnKeys

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "compose.json").read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = VECTORS["cases"]
each_case = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def parts_of(case: dict[str, Any], *, with_block: bool) -> Parts:
    """The case's parts, the block only where asked for."""
    block = case["history"] if with_block else ""
    return Parts(context=case["context"], history=block, task=case["task"], prior_work=case["prior_work"])


@each_case
def test_composition_gives_the_vectors_bytes(case: dict[str, Any]) -> None:
    """The pure function gives each vector's message, and the sizes that go with it."""
    message = compose(parts_of(case, with_block=case["phase"] == "execute"))
    assert message == case["message"]
    assert sha256(message.encode()).hexdigest() == case["sha256"]
    assert len(message.encode()) == case["user_bytes"]
    assert approximate_tokens(case["user_bytes"]) == case["approximate_tokens"]


@each_case
def test_a_turn_without_its_sidecar_gives_the_vectors_bytes(case: dict[str, Any], tmp_path: Path) -> None:
    """A whole turn whose sidecar is not there gives the same bytes, whatever its phase and its history's state."""
    history = None
    if case["history_state"] != "unread":
        data = case["history"].encode()
        state = HistoryState(case["history_state"])
        history = History(state, case["history"], sha256(data).hexdigest(), len(data))
    saved = dump(SavedTurn(TurnKeys("s", "c", "t", "w"), history, None, False, {}, ()))
    given = {name: case[name] for name in ("phase", "context", "task", "prior_work")}
    with BlockingLedger(f"unix:{tmp_path}/s", deadlines=Deadlines(user_message=0.05)) as ledger:
        assert ledger.resume(saved).user_message(**given).encode() == case["message"].encode()


@each_case
def test_the_message_of_before_the_ledger(case: dict[str, Any]) -> None:
    """Golden messages hold nothing of the ledger, and every case is golden that must be: another phase, or no block."""
    golden = case["phase"] != "execute" or case["history_state"] != "present"
    assert case["before_the_ledger"] is golden
    if golden:
        assert case["message"] == compose(parts_of(case, with_block=False))
        assert HISTORY_HEADING not in case["message"]
    else:
        assert case["history"] in case["message"]


def test_the_vectors_know_the_headings() -> None:
    """Format, joint and headings stand in the file for readers of other languages."""
    assert VECTORS["format"] == 1
    assert VECTORS["joint"] == "\n\n"
    assert VECTORS["headings"] == {"task": TASK_HEADING, "prior_work": PRIOR_WORK_HEADING, "history": HISTORY_HEADING}


def test_the_vectors_cover_the_ground() -> None:
    """Each phase meets each state, and each of the eight ways to leave parts out is there."""
    assert {(case["phase"], case["history_state"]) for case in CASES} >= {
        (phase, state)
        for phase in ("execute", "review", "other")
        for state in ("present", "empty", "disabled", "unread")
    }
    assert len({tuple(bool(case[part]) for part in ("context", "task", "prior_work")) for case in CASES}) == 8
