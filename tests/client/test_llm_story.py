"""The demo's own judge: it must be able to say that a block is wrong."""

import pytest

from tools.llm_story import story, untrue


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("- 2026-03-01T00:00:00Z (turn 00000000): did NOT reply; no writes (no note)", False),
        ("- 2026-03-01T00:00:00Z (turn 00000000): replied; no writes (no note)", True),
        ("- 2026-03-01T01:00:00Z (turn 00000001): replied; no writes", False),
        ("- 2026-03-01T01:00:00Z (turn 00000001): did NOT reply; no writes", True),
        ("### 2026-03-01T00:00:00Z (turn 00000000)\nYou did NOT reply: nobody received this text.", False),
        ("### 2026-03-01T00:00:00Z (turn 00000000)\nYou replied:", True),
        ("### 2026-03-01T01:00:00Z (turn 00000001)\n| You did NOT reply", False),
    ],
)
def test_a_wrong_line_is_found(line: str, wrong: bool) -> None:
    """Turn 0 reached nobody and turn 1 did; what is quoted is nobody's claim."""
    assert bool(untrue(line, story(2))) is wrong
