"""`turnledger sweep`: what is past retention goes now."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from sidecar.app.alone import sweep_alone
from sidecar.cli.doing import doing, progress_bar
from sidecar.cli.exits import EXIT_HELP
from sidecar.cli.options import found_for, show, size, store_options
from sidecar.cli.owner import ask_or
from sidecar.config.effective import Effective
from sidecar.services.administration import Answer


@click.command(epilog=EXIT_HELP)
@store_options
@click.option(
    "--trust-clock",
    is_flag=True,
    help="Delete by this machine's clock as it stands, without an earlier look that agrees. Look at the clock first.",
)
def sweep(config: Path | None, store: str | None, *, trust_clock: bool, as_json: bool) -> None:
    """Delete what is past retention, trim to max_entries, and give the space back.

    A running sidecar does this by itself, every sweep.interval_s. A row goes only if it was past retention at two looks
    that are an interval of uptime apart, so that a clock that leapt deletes nothing; a sidecar that has just started,
    and a store without one, have had no earlier look, and only --trust-clock deletes there.
    """
    found = found_for(config, store)
    arguments = {"trust_clock": trust_clock}
    with doing(as_json=as_json), progress_bar(as_json=as_json) as report:
        path = found.settings.sidecar.store_file
        done = ask_or(path, "sweep", arguments, report, lambda: _alone(found, arguments))

    def lines() -> list[str]:
        words = [
            f"{done['swept']} rows past retention deleted",
            f"{done['trimmed']} entries beyond max_entries taken from their rows",
            f"{done['expired']} digests of forgotten turns are kept no longer",
            f"{size(done['given_back'])} given back to the disk",
        ]
        if not done["log_is_empty"]:
            words.append("another program reads the store, so the write-ahead log could not be emptied yet")
        return words

    show(done, lambda: iter(lines()), as_json=as_json)


def _alone(found: Effective, arguments: Mapping[str, Any]) -> Answer:
    """Never by settings that are wrong: a default in the place of what was meant would delete for good."""
    if found.refusal is not None:
        raise found.refusal
    return asyncio.run(sweep_alone(found.settings, arguments))
