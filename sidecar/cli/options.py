"""What the commands share: where the store is, and how answers are printed."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click

from sidecar.cli.exits import Exit
from sidecar.config.effective import Effective, Origin, effective
from sidecar.config.keys import KEYS
from sidecar.config.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_STORE: Final = next(key for key in KEYS if key.place == "sidecar.store")


def store_options(command: F) -> F:
    """`--config` and `--store`, as `serve` takes them, and `--json`."""
    command = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")(command)
    command = click.option("--store", metavar="PATH", help="The store's file, as `serve` takes it.")(command)
    return click.option("--config", type=click.Path(path_type=Path), help="The settings file, as `serve` takes it.")(
        command
    )


def settings_of(config: Path | None, store: str | None = None) -> Settings:
    """The settings as the sidecar would have them; what is wrong with them is for `turnledger config` to say."""
    return found_for(config, store).settings


def found_for(config: Path | None, store: str | None) -> Effective:
    """The settings, and what is wrong with them.

    A store that was named and is no path stands for no other: that is wrong usage.
    """
    found = effective(config, {"store": store}, os.environ)
    if store is not None:
        named = Origin.OPTION
    elif _STORE.variable in found.inputs.variables:
        named = Origin.VARIABLE
    else:
        return found
    if found.sources[_STORE.place].origin is not named:
        raise click.UsageError(next(problem for problem in reversed(found.problems) if _STORE.place in problem))
    return found


def show(answer: Mapping[str, Any], lines: Callable[[], Iterator[str]], *, as_json: bool) -> None:
    """Print the answer: as one line of JSON, or in words."""
    click.echo(json.dumps(answer) if as_json else "\n".join(lines()))


def give_up(code: Exit, message: str, *, as_json: bool = False, reason: str = "") -> NoReturn:
    """Say why on stderr, for scripts as JSON on stdout too, and exit."""
    if as_json:
        click.echo(json.dumps({"error": {"code": reason or code.name, "message": message}}))
    click.echo(f"turnledger: {message}", err=True)
    sys.exit(code)


def size(count: int) -> str:
    """Bytes for a person."""
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
