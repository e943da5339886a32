"""`turnledger restore`: a backup in the store's place."""

from pathlib import Path

import click

from sidecar.app.alone import Owned, restore_alone
from sidecar.cli.doing import doing, progress_bar
from sidecar.cli.exits import EXIT_HELP, Exit
from sidecar.cli.options import give_up, settings_of, show, store_options
from sidecar.store.restore import ForgottenUnknown


@click.command(epilog=EXIT_HELP)
@store_options
@click.option(
    "--forget-unknown",
    is_flag=True,
    help="Restore although the store in place cannot say which turns were forgotten since: those come back.",
)
@click.argument("backup", type=click.Path(path_type=Path))
def restore(config: Path | None, store: str | None, backup: Path, *, forget_unknown: bool, as_json: bool) -> None:
    """Put the file BACKUP in the store's place. Stop the sidecar first.

    The backup is checked, and what was forgotten since it was made is forgotten in it again, before anything is
    replaced; if that cannot be known, nothing is done without --forget-unknown. The replaced store is kept beside the
    new one under the name that is printed: remove it once you are sure. What was recorded after the backup is lost.

    \b
    turnledger restore /backups/2026-01-31.db
    """
    path = settings_of(config, store).sidecar.store_file
    with doing(as_json=as_json), progress_bar(as_json=as_json) as report:
        try:
            done = restore_alone(path, backup, report, forget_unknown=forget_unknown)
        except Owned:
            give_up(Exit.UNSAFE, "a sidecar owns this store; stop it, then restore", as_json=as_json)
        except ForgottenUnknown as error:
            give_up(Exit.UNSAFE, error.message, as_json=as_json, reason=error.code.value)

    def lines() -> list[str]:
        words = [f"{path}: {done['rows']} rows, {done['entries']} of them with their entry, restored from {backup}"]
        if done["forgotten_again"]:
            words.append(f"{done['forgotten_again']} turns that were forgotten since are forgotten again")
        if done["aside"]:
            words.append(f"what was there before is {done['aside']}; remove it once you are sure")
        return words

    show(done, lambda: iter(lines()), as_json=as_json)
