"""`turnledger stats`: totals, sizes and states. Never contents."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sidecar.app.alone import stats_alone
from sidecar.cli.doing import doing
from sidecar.cli.exits import EXIT_HELP
from sidecar.cli.options import settings_of, show, size, store_options
from sidecar.cli.owner import ask_or
from sidecar.store.progress import unreported


@click.command(epilog=EXIT_HELP)
@store_options
def stats(config: Path | None, store: str | None, *, as_json: bool) -> None:
    """Print how much the store holds, what it takes, and how the sidecar is.

    Counts alone: no command shows which seats and conversations there are, or what was said.
    """
    path = settings_of(config, store).sidecar.store_file
    with doing(as_json=as_json):
        found = ask_or(path, "stats", {}, unreported, lambda: stats_alone(path))
    show(found, lambda: _lines(found), as_json=as_json)


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    if "health" not in found:
        yield "sidecar        not running"
    elif not found["store"]["open"]:
        yield f"store          not open: {found['store']['message']}"
    if "totals" in found:
        yield from _totals(found["totals"], found["sizes"])
    for name, state in found.get("health", {}).items():
        yield f"{name:<14} {'well' if state['well'] else 'NOT WELL: ' + state['detail']}"
    if waiting := found.get("settings", {}).get("waiting"):
        yield f"settings       need a restart: {', '.join(waiting)}"


def _totals(totals: Mapping[str, Any], sizes: Mapping[str, Any]) -> Iterator[str]:
    oldest = totals["oldest_at"]
    yield f"entries        {totals['entries']}, and {totals['trimmed']} rows whose entry is no longer kept"
    yield f"conversations  {totals['conversations']} of {totals['seats']} seats"
    yield f"forgotten      {totals['forgotten']} turns are remembered as such, by digest"
    yield f"oldest row     {'none' if oldest is None else datetime.fromtimestamp(oldest, UTC).isoformat()}"
    yield f"store          {size(sizes['store_bytes'])}, log {size(sizes['log_bytes'])}, schema {totals['schema']}"
    yield f"disk           {size(sizes['disk_free_bytes'])} free of {size(sizes['disk_total_bytes'])}"
