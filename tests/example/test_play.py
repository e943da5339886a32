"""The commands that a reader types first."""

import asyncio
import sys


async def _run(*arguments: str) -> tuple[int | None, str]:
    command = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "examples.engine",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await command.communicate()
    return command.returncode, output.decode()


async def test_the_play_holds_what_it_claims() -> None:
    """`--play` starts its own sidecar and engines, shows every scene with its claims met, and ends well."""
    code, output = await _run("--play")
    assert code == 0, output
    assert "✗" not in output
    assert output.count("✓") > 15


async def test_a_crash_is_wanted_only_where_it_can_be_recovered_from() -> None:
    """`--crash-after` without a folder and a sidecar that outlive the engine is refused with the reason."""
    code, output = await _run("--crash-after", "write")
    assert code == 2
    assert "wants --ledger and --folder" in output
