"""The examples of docs/identity.md run, in order, as one program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from turnledger.identity import SOURCES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "identity.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def program() -> str:
    """The page with everything but its examples blanked, so that a failure shows its line."""
    page = PAGE.read_text(encoding="utf-8")
    lines = ["" for _ in page.split("\n")]
    for block in BLOCK.finditer(page):
        first = page.count("\n", 0, block.start(1))
        for offset, line in enumerate(block[1].split("\n")):
            lines[first + offset] = line or lines[first + offset]
    return "\n".join(lines)


def test_the_examples_run() -> None:
    """Every example holds, a new source among them, and the library's sources stay as they are."""
    known = dict(SOURCES)
    names: dict[str, object] = {}
    exec(compile(program(), str(PAGE), "exec"), names)  # noqa: S102  the page is ours
    assert {"found", "merged", "direct", "lost"} <= set(names)
    assert dict(SOURCES) == known


def test_an_example_that_does_not_hold_fails() -> None:
    """The examples are really run: one false statement among them stops the program."""
    spoiled = program().replace("lost.reason ==", "lost.reason !=")
    assert spoiled != program()
    with pytest.raises(AssertionError):
        exec(compile(spoiled, str(PAGE), "exec"), {})  # noqa: S102  the page is ours
