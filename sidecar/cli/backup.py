"""`turnledger backup`: a verified copy, while turns go on being recorded."""

from functools import partial
from pathlib import Path

import click

from sidecar.app.alone import backup_alone
from sidecar.cli.doing import doing, progress_bar
from sidecar.cli.exits import EXIT_HELP
from sidecar.cli.options import settings_of, show, size, store_options
from sidecar.cli.owner import ask_or


@click.command(epilog=EXIT_HELP)
@store_options
@click.argument("target", type=click.Path(path_type=Path))
def backup(config: Path | None, store: str | None, target: Path, *, as_json: bool) -> None:
    """Copy the store to TARGET, a file that is not there yet.

    The copy is of one moment, whatever is recorded meanwhile, and is checked before it gets its name: a TARGET that is
    there is a backup that can be restored. A running sidecar makes it, so TARGET is a path that the sidecar can write.
    Its file is readable by its owner alone. What is forgotten later stays in it: Forget does not reach backups.

    \b
    turnledger backup /backups/$(date +%F).db
    """
    path = settings_of(config, store).sidecar.store_file
    to = target.absolute()
    with doing(as_json=as_json), progress_bar(as_json=as_json) as report:
        made = ask_or(path, "backup", {"to": str(to)}, report, partial(backup_alone, path, to, report))
    words = f"{made['path']}: {size(made['size_bytes'])}, {made['rows']} rows, {made['entries']} with their entry"
    show(made, lambda: iter((words, "checked: sound")), as_json=as_json)
