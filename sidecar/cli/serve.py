"""`turnledger serve`: run the sidecar."""

import asyncio
import logging
from pathlib import Path

import click
import msgspec
import uvloop

from sidecar.app.app import App, Launch
from sidecar.config.file import listen_of, read_settings
from sidecar.config.listen import parse_listen
from sidecar.config.settings import DEFAULT_LISTEN, DEFAULT_STORE, Settings
from sidecar.domain.errors import LedgerError


@click.command()
@click.option(
    "--config", type=click.Path(path_type=Path), help="The settings, a YAML file. Without it the defaults hold."
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    help=f"unix:///path/to.sock, 127.0.0.1:port or [::1]:port. Overrides sidecar.listen. [default: {DEFAULT_LISTEN}]",
)
@click.option(
    "--store",
    metavar="PATH",
    help=f"The store's file, on local storage. Overrides sidecar.store. [default: {DEFAULT_STORE}]",
)
def serve(config: Path | None, listen: str | None, store: str | None) -> None:
    """Run the sidecar until SIGTERM or SIGINT.

    It binds and answers whatever the state of its store and configuration: a call that cannot be served gets a status
    that says why. The folders of socket and store are made where they are missing.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    launch = launch_from(config, listen, store)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(launch))


def launch_from(config: Path | None, listen: str | None, store: str | None) -> Launch:
    """Settings from the file and the options. What is wrong with them becomes what every call is told."""
    refusal = None
    try:
        settings = read_settings(config)
    except LedgerError as error:
        settings, refusal = Settings(), error
        listen = listen or listen_of(config)
    changes = {name: value for name, value in (("listen", listen), ("store", store)) if value is not None}
    settings = msgspec.structs.replace(settings, sidecar=msgspec.structs.replace(settings.sidecar, **changes))
    try:
        parse_listen(settings.sidecar.listen)
    except LedgerError as error:
        refusal = refusal or error
    return Launch(settings, refusal)


async def _serve(launch: Launch) -> None:
    await App(launch).run()
