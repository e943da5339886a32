"""`turnledger config`: which settings hold, and where each comes from."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from sidecar.config.effective import Effective, effective
from sidecar.config.keys import KEYS, Key


@click.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="The settings file to judge. [default: the one that TURNLEDGER_CONFIG names, else none]",
)
@click.option("--listen", metavar="ADDRESS", help="As `serve` takes it.")
@click.option("--health", metavar="HOST:PORT", help="As `serve` takes it.")
@click.option("--store", metavar="PATH", help="As `serve` takes it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for scripts.")
def config(config: Path | None, listen: str | None, health: str | None, store: str | None, *, as_json: bool) -> None:
    """Print the settings that hold, and where each comes from.

    An option overrides a variable, a variable the file, the file the default. What is changed in the file is taken at
    once where it says `live`, and at the next start elsewhere. Nothing is started and no store is touched.

    \b
    Exit code 0: all is right. 1: something is wrong, and is told on stderr with its place.

    \b
    Before a file is rolled out:   turnledger config --config settings.yaml
    What a container started with: turnledger config --json | jq '.settings[] | select(.source != "default")'
    """
    found = effective(config, {"listen": listen, "health": health, "store": store}, os.environ)
    click.echo(json.dumps(_document(found), ensure_ascii=False, indent=2) if as_json else "\n".join(_table(found)))
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    for problem in found.problems:
        click.echo(f"wrong: {problem}", err=True)
    if found.problems:
        click.echo("With these settings each call is refused with CONFIG_INVALID.", err=True)
        sys.exit(1)


def _table(found: Effective) -> Iterator[str]:
    rows = [("KEY", "VALUE", "CHANGES", "FROM")]
    rows += [(key.place, _value(found, key), "live" if key.live else "at start", _from(found, key)) for key in KEYS]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True)).rstrip()


def _value(found: Effective, key: Key) -> str:
    value = key.of(found.settings)
    return value if isinstance(value, str) else json.dumps(value).replace("null", "(unset)")


def _from(found: Effective, key: Key) -> str:
    return str(found.sources[key.place])


def _document(found: Effective) -> dict[str, object]:
    return {
        "ok": not found.problems,
        "file": None if found.inputs.path is None else str(found.inputs.path),
        "problems": list(found.problems),
        "notes": list(found.notes),
        "settings": [
            {
                "key": key.place,
                "value": key.of(found.settings),
                "source": str(found.sources[key.place].origin),
                "name": found.sources[key.place].name or None,
                "takes": key.takes,
                "live": key.live,
                "variable": key.variable,
                "option": key.option and f"--{key.option}",
            }
            for key in KEYS
        ],
    }
