"""`make torture`: every experiment in full, and what came of it as a table."""

import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from tests.torture import (
    access,
    corruption,
    crash,
    faults,
    file_itself,
    full_disk,
    fuzz,
    hostile_input,
    load,
    opening,
    power,
    processes,
    shared_commit,
    undo,
    writer,
)
from tests.torture.experiment import Experiment, Finding, Scale

EXPERIMENTS: Final[Sequence[Experiment]] = (
    crash.EXPERIMENT,
    power.EXPERIMENT,
    faults.EXPERIMENT,
    opening.EXPERIMENT,
    shared_commit.EXPERIMENT,
    corruption.EXPERIMENT,
    file_itself.EXPERIMENT,
    full_disk.EXPERIMENT,
    undo.EXPERIMENT,
    fuzz.EXPERIMENT,
    hostile_input.EXPERIMENT,
    access.EXPERIMENT,
    load.EXPERIMENT,
    processes.EXPERIMENT,
    writer.EXPERIMENT,
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", "only", multiple=True, type=click.Choice([each.name for each in EXPERIMENTS]))
@click.option("--quick", is_flag=True, help="The form that the quick tests run: seconds instead of minutes.")
@click.option(
    "--seed", type=int, default=None, help="Of an earlier run, to have it again.  [default: another each time]"
)
def torture(only: tuple[str, ...], seed: int | None, *, quick: bool) -> None:
    """Try to break turnledger, and print what held as a Markdown table. Exits with 1 if a promise was broken."""
    scale = Scale(quick, random.randrange(2**32) if seed is None else seed)
    chosen = [each for each in EXPERIMENTS if not only or each.name in only]
    print(f"{len(chosen)} experiments, seed {scale.seed}", file=sys.stderr)
    findings = [(each, finding) for each in chosen for finding in _run(each, scale)]
    print("\n".join(_table(findings)))
    for each, finding in findings:
        for way, times in Counter(finding.broken).items():
            print(f"BROKEN in {each.name}: {finding.promise}: {way} ({times} times)")
    sys.exit(any(finding.broken for _, finding in findings))


def _run(experiment: Experiment, scale: Scale) -> Sequence[Finding]:
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"[{experiment.name} {time.monotonic() - began:.0f} s] {line}", file=sys.stderr, flush=True)

    say(experiment.about)
    with tempfile.TemporaryDirectory(prefix="tl-", ignore_cleanup_errors=True) as folder:
        findings = asyncio.run(experiment.run(Path(folder), scale, say))
    say("done" if all(finding.held for finding in findings) else "BROKEN")
    return findings


def _table(findings: Sequence[tuple[Experiment, Finding]]) -> Sequence[str]:
    rows = [
        f"| {finding.promise} | {finding.figures} | {'yes' if finding.held else '**no**'} | `{each.name}` |"
        for each, finding in findings
    ]
    return ["| promise | tried | held | experiment |", "|---|---|---|---|", *rows]


if __name__ == "__main__":
    torture()
