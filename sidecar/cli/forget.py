"""`turnledger forget`: erasure, with its scope said outright."""

import asyncio
import sys
from pathlib import Path

import click

from sidecar.app.alone import forget_alone
from sidecar.cli.doing import doing
from sidecar.cli.exits import EXIT_HELP, Exit
from sidecar.cli.options import give_up, settings_of, show, store_options
from sidecar.cli.owner import ask_or
from sidecar.store.progress import unreported


@click.command(epilog=EXIT_HELP)
@store_options
@click.option("--seat", required=True, metavar="HANDLE", help="Whose turns. Alone: all of them, in all conversations.")
@click.option("--conversation", metavar="KEY", help="Only those of this conversation.")
@click.option("--work-key", metavar="KEY", help="Only this one turn of the conversation.")
@click.option("--all-of-seat", is_flag=True, help="Say that all conversations of the seat are meant.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(
    config: Path | None,
    store: str | None,
    seat: str,
    conversation: str | None,
    work_key: str | None,
    *,
    all_of_seat: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Erase turns for good, from the store and from what it left on the disk.

    A turn that is forgotten does not come back: a redelivery of it is skipped until retention passes, and a restored
    backup forgets it again. Backups themselves keep it until they are deleted, and so does any other node's store.

    \b
    turnledger forget --seat support --conversation jira:POC-7
    turnledger forget --seat support --all-of-seat

    Exits with 1 while a reader of another program keeps erased text in the write-ahead log; the sidecar goes on trying.
    """
    if (conversation is None) != all_of_seat:
        raise click.UsageError("give either --conversation or --all-of-seat")
    if work_key is not None and conversation is None:
        raise click.UsageError("--work-key needs --conversation")
    settings = settings_of(config, store)
    scope = f"one turn of {seat!r} in {conversation!r}" if work_key else f"all turns of {seat!r} in {conversation!r}"
    scope = f"all turns of {seat!r} in all conversations" if all_of_seat else scope
    if not yes:
        if not sys.stdin.isatty():
            give_up(Exit.UNSAFE, f"this would erase {scope}; say --yes to mean it", as_json=as_json)
        click.confirm(f"Erase {scope}, for good?", abort=True, err=True)
    arguments = {"agent_handle": seat, "conversation_key": conversation, "work_key": work_key}
    path = settings.sidecar.store_file
    with doing(as_json=as_json):
        done = ask_or(path, "forget", arguments, unreported, lambda: asyncio.run(forget_alone(settings, arguments)))
    state = "erased from the files too" if done["complete"] else "not yet from the log, which a reader holds"
    show(done, lambda: iter((f"{done['forgotten']} turns forgotten, {state}",)), as_json=as_json)
    sys.exit(Exit.DONE if done["complete"] else Exit.NO)
