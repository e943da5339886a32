"""`turnledger check`: is the store sound?"""

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from sidecar.app.alone import check_alone
from sidecar.cli.doing import doing, progress_bar
from sidecar.cli.exits import EXIT_HELP, Exit
from sidecar.cli.options import settings_of, show, store_options
from sidecar.cli.owner import ask_or


@click.command(epilog=EXIT_HELP)
@store_options
@click.argument("file", required=False, type=click.Path(path_type=Path))
def check(config: Path | None, store: str | None, file: Path | None, *, as_json: bool) -> None:
    """Check the store, or the FILE of a backup.

    SQLite's own check of every page and index, then each entry against its checksum, then what must hold between rows.
    Nothing is changed. A running sidecar checks its own store beside its work; without one the file is read as it is.
    Damaged rows are named by their id, and nothing of what they say is printed.

    \b
    turnledger check                       the store of the settings
    turnledger check /backups/monday.db    a backup, before you need it

    Exits with 1 where damage was found.
    """
    path = file or Path(settings_of(config, store).sidecar.store)
    with doing(as_json=as_json), progress_bar(as_json=as_json) as report:
        found = ask_or(path, "check", {}, report, partial(check_alone, path, report))
    show(found, lambda: _lines(path, found), as_json=as_json)
    sys.exit(Exit.DONE if found["sound"] else Exit.NO)


def _lines(path: Path, found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{path}: {found['rows']} rows, {found['entries']} of them with their entry"
    if found["sound"]:
        yield "sound"
    if found["unreadable"]:
        ids = ", ".join(map(str, found["unreadable_ids"]))
        yield f"damaged: {found['unreadable']} entries cannot be read (rows {ids}); each costs that turn alone"
    if found["ordinals_twice"]:
        yield f"damaged: {found['ordinals_twice']} places in conversations are claimed by two rows"
    for finding in found["findings"]:
        yield f"damaged: {finding}"
