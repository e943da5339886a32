"""Runs the language-neutral cases in Python's column, and holds the tool to its own promises."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tools.conformance.__main__ import column, matrix, reasons, run, wrong
from tools.conformance.cases import Case, chosen
from tools.conformance.drivers import Language, languages
from tools.conformance.expectations import complaints
from tools.conformance.play import FAILED, PASSED, SKIPPED

CASES = chosen("*")
GROUPS = sorted({case.group for case in CASES})
#: These start sidecars of their own, or wait for deadlines to pass.
SLOW = {"disposition", "fail_open", "once", "order"}


@pytest.mark.parametrize(
    "group", [pytest.param(group, marks=[pytest.mark.slow] if group in SLOW else []) for group in GROUPS]
)
async def test_pythons_column_is_whole(group: str) -> None:
    """Every case passes through the blocking ledger."""
    cases = [case for case in CASES if case.group == group]
    failures = wrong(cases, await run(["python"], cases))
    assert not failures, failures


def test_the_cases_cover_the_ground() -> None:
    """Each subject that a client answers for has its cases, and no two cases have one name."""
    assert set(GROUPS) >= {"compose", "disposition", "fail_open", "number", "once", "order", "status", "text", "turn"}
    assert max(Counter(case.title for case in CASES).values()) == 1


def test_no_two_cases_that_share_a_sidecar_share_a_seat() -> None:
    """What one case leaves in the shared ledger is never another's history."""
    seats = [(seat, case.title) for case in CASES if case.sidecar == "real" for seat in _seats(case)]
    owners = Counter(seat for seat, _ in set(seats))
    assert [seat for seat, count in owners.items() if count > 1 and seat != "''"] == []


def _seats(case: Case) -> set[str]:
    return {repr(step["agent_handle"]) for step in case.steps if step.get("do") == "begin"}


async def test_a_language_without_a_driver_fails_every_cell(tmp_path: Path) -> None:
    """A driver that is missing, or ends, or cannot be built, skips its cells, and a skipped cell is a failure."""
    cases = chosen("work_key/*")
    folder = tmp_path / "absent"
    for language in (
        Language("missing", (str(folder),)),
        Language("ends", ("true",)),
        Language("unbuilt", ("true",), build=("false",)),
        Language("nowhere", ("true",), build=("true",), folder=folder),
    ):
        cells = await column(language, cases, tmp_path)
        assert {cell.verdict for cell in cells.values()} == {SKIPPED}
        failures = wrong(cases, {language.name: cells})
        assert len(failures) == len(cases)
        assert len(reasons(failures, verbose=True)) == 1


async def test_a_case_that_does_not_hold_fails_and_says_where(tmp_path: Path) -> None:
    """A wrong answer, a command that nobody knows and a step that takes too long are told apart, case by case."""
    begin = dict.fromkeys(("agent_handle", "conversation_key", "turn_id", "work_key"), "x") | {"do": "begin"}
    cases = [
        Case("g", "wrong", "dead", {}, ({**begin, "expect": {"already_recorded": True}},)),
        Case("g", "unknown", "dead", {}, ({"do": "fly"},)),
        Case("g", "late", "dead", {}, ({**begin, "within": 0},)),
        Case("g", "right", "dead", {}, (begin,)),
    ]
    cells = await column(languages(tmp_path)["python"], cases, tmp_path)
    assert [cells[case.title].verdict for case in cases] == [FAILED, SKIPPED, FAILED, PASSED]
    assert "step 1 (begin): .ok.already_recorded: expected True, came False" in cells["g/wrong"].notes
    assert matrix(cases, {"python": cells}).splitlines()[1].split() == ["g/wrong", "FAIL"]


@pytest.mark.parametrize(
    ("expected", "came"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "x", "c": 3}]}),
        ({"repeat": "ab", "times": 3}, "ababab"),
        ({"$contains": ["b", {"utf16": ["d83d", "de42"]}]}, "abc🙂"),
        ({"$contains": "a", "$lacks": "x"}, "abc"),
        ({"$at_least": 2}, 2),
        ({"$one_of": ["a", "b"]}, "b"),
        ({"$not_empty": True}, "x"),
        ({"a": {"$absent": True}}, {"b": 1}),
        ({"$json": {"a": [1]}, "$lacks": "x"}, '{"a": [1], "b": 2}'),
        (None, None),
    ],
)
def test_what_is_expected_holds(expected: Any, came: Any) -> None:
    """Members that are not named are let be, recipes are texts, tests are tests."""
    assert complaints(expected, came) == []


@pytest.mark.parametrize(
    ("expected", "came"),
    [
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"a": "1"}),
        ({"a": [1]}, {"a": [1, 2]}),
        ({"repeat": "ab", "times": 3}, "abab"),
        ({"$contains": ["b", "x"]}, "abc"),
        ({"$contains": "a", "$lacks": "c"}, "abc"),
        ({"$lacks": "c"}, None),
        ({"$at_least": 2}, 1),
        ({"$at_least": 0}, False),
        ({"$at_most": 2}, 3),
        ({"$one_of": ["a", "b"]}, "c"),
        ({"$not_empty": True}, ""),
        ({"a": {"$absent": True}}, {"a": ""}),
        ({"$json": {"a": [1]}}, '{"a": [2]}'),
        ({"$json": {}}, "{"),
        ({"$json": {}}, None),
        (None, 0),
        ({"a": None}, {}),
    ],
)
def test_what_is_not_expected_is_complained_of(expected: Any, came: Any) -> None:
    """A value of another type, a list of another length and a member that is not there are each found."""
    assert len(complaints(expected, came)) == 1
