"""`turnledger demo`."""

import click


@click.command()
def demo() -> None:
    """Show the main job."""
