"""The command and its subcommands, each in a module of its own."""

import click

from sidecar.cli.backup import backup
from sidecar.cli.check import check
from sidecar.cli.config import config
from sidecar.cli.demo import demo
from sidecar.cli.forget import forget
from sidecar.cli.probe import probe
from sidecar.cli.restore import restore
from sidecar.cli.serve import serve
from sidecar.cli.stats import stats
from sidecar.cli.sweep import sweep


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="turnledger-sidecar")
def main() -> None:
    """The conversation session ledger for AI-agent engines.

    An engine records each completed turn here, and gets the earlier turns of the same conversation back as a block for
    its prompt. `turnledger demo` shows it in a few seconds; `turnledger serve` runs it beside an engine.
    """


for command in (serve, demo, config, probe, stats, check, backup, restore, sweep, forget):
    main.add_command(command)
