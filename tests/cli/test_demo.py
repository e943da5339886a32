import re

from click.testing import CliRunner

from sidecar.cli.main import main
from sidecar.cli.story import CONTEXT, NEXT_TASK, TURNS


def test_demo_shows_the_main_job() -> None:
    """The demo records its turns once, knows a redelivery, and shows the next message with the block and without it."""
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == 0, result.output
    assert [f"turn {number}  RECORDED  as entry {number}" in result.output for number in range(1, 5)] == [True] * 4
    assert "turn 4  DUPLICATE of entry 4   the same trigger again: known from the start" in result.output
    on, off = (_message(part) for part in result.output.split("with the switch off"))
    assert off == f"{CONTEXT}\n\n## Task\n\n{NEXT_TASK}"
    assert on.startswith(f"{CONTEXT}\n\n## Earlier in this conversation\n")
    assert on.endswith(f"\n\n## Task\n\n{NEXT_TASK}")
    assert on.count("\n### ") == len(TURNS)
    assert "DE02" not in on
    assert re.search(r"history PRESENT: 4 whole, 0 condensed, \d+ bytes", result.output)
    assert "history DISABLED: 0 whole, 0 condensed, 0 bytes" in result.output


def test_help_teaches() -> None:
    """Every command explains itself."""
    for command in ([], ["serve"], ["demo"]):
        result = CliRunner().invoke(main, [*command, "--help"])
        assert result.exit_code == 0
        assert len(result.output.splitlines()) > 5


def _message(output: str) -> str:
    lines = [line.removeprefix("   │ ") for line in output.splitlines() if line.startswith("   │ ")]
    return "\n".join(lines)
