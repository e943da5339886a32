"""`turnledger serve`: run the sidecar."""

import asyncio
import logging
import os
from pathlib import Path

import click
import uvloop

from sidecar.app.app import App, Launch
from sidecar.config.effective import effective
from sidecar.config.settings import DEFAULT_LISTEN, DEFAULT_STORE


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
    """The settings that hold. What is wrong with them becomes what every call is told."""
    found = effective(config, {"listen": listen, "store": store}, os.environ)
    return Launch(found.settings, found.refusal)


async def _serve(launch: Launch) -> None:
    await App(launch).run()
