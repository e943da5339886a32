"""`python -m sidecar` is the command `turnledger`."""

from sidecar.cli import main

main()
