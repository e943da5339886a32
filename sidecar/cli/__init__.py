"""The command `turnledger`."""

from sidecar.cli.main import main

__all__ = ["main"]
