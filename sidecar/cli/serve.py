"""`turnledger serve`: run the sidecar."""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

import click
import uvloop

from sidecar.app.app import App, Launch
from sidecar.config.effective import effective
from sidecar.config.settings import DEFAULT_HEALTH, DEFAULT_LISTEN, DEFAULT_STORE


@click.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="The settings, a YAML file. [default: the one that TURNLEDGER_CONFIG names, else none]",
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
@click.option(
    "--health",
    metavar="HOST:PORT",
    help=f"Where grpc.health.v1 is served. Overrides sidecar.health. [default: {DEFAULT_HEALTH}]",
)
def serve(config: Path | None, listen: str | None, store: str | None, health: str | None) -> None:
    """Run the sidecar until SIGTERM or SIGINT; a second one cuts its grace short. SIGHUP reads the settings again.

    It binds and answers whatever the state of its store and configuration: a call that cannot be served gets a status
    that says why. The folders of socket and store are made where they are missing.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(lambda: launch_from(config, listen, store, health)))


def launch_from(config: Path | None, listen: str | None, store: str | None, health: str | None = None) -> Launch:
    """The settings that hold. What is wrong with them becomes what every call is told."""
    found = effective(config, {"listen": listen, "store": store, "health": health}, os.environ)
    return Launch(found.settings, found.refusal, found=found)


async def _serve(launch: Callable[[], Launch]) -> None:
    """Anew, from the settings on, where a process that started with wrong ones has found them corrected."""
    begins = True
    while begins:
        app = App(launch())
        await app.run()
        begins = app.begins_anew
