"""The README of the cases says everything that a driver's author must know: Python's driver is held to it."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from turnledger import Deadlines, History, Receipt, Settlement, Stats

from tests.conformance.driver import Driver, neutral, text
from tools.conformance.cases import FOLDER, chosen
from tools.conformance.sidecars import Sidecar, opened

README = (FOLDER / "README.md").read_text(encoding="utf-8")
#: What Python alone counts.
PYTHONS_OWN = {"hook_failures", "rewriter_prompt_tokens", "rewriter_completion_tokens"}


def _words(text_of: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text_of))


def _section(start: str, end: str) -> str:
    return README[README.index(start) : README.index(end, README.index(start) + 1)]


def test_every_command_is_in_the_readme() -> None:
    """The table has exactly what the driver knows."""
    rows = [line.split("|")[1] for line in _section("### Commands", "- TURN:").splitlines() if line.startswith("| `")]
    known = {name.removeprefix("_do_") for name in vars(Driver) if name.startswith("_do_")}
    assert {word for row in rows for word in _words(row)} == known


def test_every_count_and_every_deadline_is_in_the_readme() -> None:
    """Names are those of the Python client, none is missing and none is more."""
    counts = _words(_section("The counts of `stats`:", "### What")) - {"stats"}
    assert counts == {each.name for each in fields(Stats)} - PYTHONS_OWN
    deadlines = _words(_section("- `deadlines` are", "- `rewriter` is")) - {"deadlines", "Deadlines"}
    assert deadlines == {each.name for each in fields(Deadlines)}


@pytest.mark.parametrize(
    ("start", "of"), [("- HISTORY:", History), ("- RECEIPT:", Receipt), ('"outcome", ', Settlement)]
)
def test_every_member_of_an_answer_is_in_the_readme(start: str, of: type) -> None:
    """A driver in another language gives the members that Python's gives."""
    named = set(re.findall(r'"(\w+)"', _section(start, "}")))
    assert named == {each.name for each in fields(of)}


def test_every_member_that_a_case_uses_is_in_the_readme() -> None:
    """No step of a case asks for what the README does not know."""
    members = {member for case in chosen("*") for step in case.steps for member in step}
    assert {member for member in members if f"`{member}`" not in README} == set()


async def test_the_readme_knows_every_sidecar(tmp_path: Path) -> None:
    """A case that names another is an error, not a case that passes."""
    with pytest.raises(ValueError, match="no such sidecar"):
        async with opened("mute", tmp_path, Sidecar("unix:///nowhere")):
            raise AssertionError


def test_texts_by_recipe() -> None:
    """Recipes nest; halves that stand together are a character, one that stands alone stays what it is."""
    assert text({"join": ["a", {"repeat": {"utf16": ["d83d", "de42"]}, "times": 2}]}) == "a🙂🙂"
    assert text({"utf16": ["0061", "d800"]}) == "a\ud800"


def test_answers_are_neutral() -> None:
    """Large texts are named by digest and size, large numbers are digits, and booleans stay booleans."""
    assert neutral({"a": 2**53 - 1, "b": 2**53, "c": True}) == {"a": 2**53 - 1, "b": "9007199254740992", "c": True}
    assert neutral("ü" * 32_768) == "ü" * 32_768
    assert neutral("ü" * 32_769)["bytes"] == 65_538
