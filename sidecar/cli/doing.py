"""Running a command's work: progress while it lasts, Ctrl-C, and what each failure exits with."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from sidecar.app.alone import Owned
from sidecar.cli.exits import Exit
from sidecar.cli.options import give_up
from sidecar.domain.errors import Code, LedgerError
from sidecar.store.progress import Progress, Report, unreported

#: What a person has to get to first: everything else failed in itself.
_OUT_OF_REACH = frozenset({Code.STORE_UNAVAILABLE, Code.STORE_NEWER})


@contextmanager
def doing(*, as_json: bool) -> Iterator[None]:
    """Turn what goes wrong inside into a line on stderr and an exit code."""
    try:
        yield
    except Owned:
        give_up(
            Exit.UNREACHABLE,
            "another process owns the store and does not answer on its admin socket; look at the sidecar's log",
            as_json=as_json,
        )
    except LedgerError as error:
        code = Exit.UNREACHABLE if error.code in _OUT_OF_REACH else Exit.NO
        give_up(code, error.message, as_json=as_json, reason=error.code.value)


@contextmanager
def progress_bar(*, as_json: bool) -> Iterator[Report]:
    """A bar for each phase, on a terminal; nothing where nobody watches."""
    if as_json or not sys.stderr.isatty():
        yield unreported
        return
    bars: dict[str, Any] = {}

    def report(progress: Progress) -> None:
        if progress.phase not in bars:
            for bar in bars.values():
                bar.render_finish()
            bars[progress.phase] = click.progressbar(
                length=progress.total, label=progress.phase, file=sys.stderr, show_eta=progress.total > 0
            )
        bar = bars[progress.phase]
        bar.length = progress.total
        bar.update(progress.done - bar.pos)

    yield report
    for bar in bars.values():
        bar.render_finish()
