"""docs/telemetry.md as data: what it promises is what there must be."""

import re
from collections.abc import Iterator
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "docs" / "telemetry.md"


def section(title: str) -> str:
    """The text under a heading, its own sub-headings included."""
    found = re.search(
        rf"^(#+) {re.escape(title)}\n(.*?)(?=^\1? ?#{{1,2}} |\Z)", _PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert found, title
    return found[2]


def rows(title: str) -> Iterator[list[str]]:
    """The cells of the section's tables, without their heads."""
    for line in section(title).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            yield cells


def names(title: str) -> set[str]:
    """The code words of the first cells."""
    return {name for cells in rows(title) for name in re.findall(r"`([^`]+)`", cells[0])}


def metrics() -> dict[str, set[str]]:
    """The sidecar's metrics and the attributes that each may have."""
    found: dict[str, set[str]] = {}
    before: set[str] = set()
    for cells in rows("Metrics"):
        [name] = re.findall(r"`([^`]+)`", cells[0])
        before = before if cells[3] == "as above" else set(re.findall(r"`([^`]+)`", cells[3]))
        found[name] = before
    return found
