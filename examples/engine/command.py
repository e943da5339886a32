"""The command line."""

import argparse
import asyncio
import logging
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from examples.engine.engine import Settings, serve
from examples.engine.faults import POINTS, Faults
from examples.engine.ledger_process import sidecar_in
from examples.engine.play import play

_EPILOG: Final = """\
See it all at once:
  python -m examples.engine --play

Or by hand. In one terminal, `python -m examples.engine`; in another:
  curl 127.0.0.1:8040/webhooks/jira -d '{"issue": {"id": "1", "key": "SHOP-7"},
    "comment": {"id": "11", "created": "2026-03-02T09:14:00Z", "author": {"displayName": "Mira"},
                "body": "I was charged twice."}}'
  ... change the comment's id and body, send it again, and see what the second turn is told;
  ... send the same one again: it is dropped;
  ... write "please restart the shop": the turn waits for the approval that the engine names.

  GET /                      what waits, runs, is suspended, unsent, over
  POST /webhooks/SOURCE      github, gitlab, jira or slack; GitHub's event stands in X-GitHub-Event
  POST /approvals/WORK_KEY   {"approved": true} resumes a suspended turn, in whatever process has the folder
  POST /deliveries           {}: sends what nobody received, and settles it
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, and run or play. Answers the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.crash_after and not (options.ledger and options.folder):
        parser.error(
            "--crash-after wants --ledger and --folder: a killed engine ends no sidecar, and leaves its folder"
        )
    logging.basicConfig(stream=sys.stdout, format="  (log) %(message)s")
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnledger-engine-")))
        folder.mkdir(parents=True, exist_ok=True)
        ledger = options.ledger or stack.enter_context(sidecar_in(folder))
        if options.play:
            return asyncio.run(play(ledger, folder))
        asyncio.run(_serve(_settings(options, folder, ledger)))
    return 0


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await serve(settings, stop)


def _settings(options: argparse.Namespace, folder: Path, ledger: str) -> Settings:
    return Settings(
        ledger=ledger,
        seat=options.seat,
        folder=folder,
        port=options.port,
        quiet=options.quiet,
        thinking=options.thinking,
        append=options.append_seconds,
        show_prompts=not options.no_prompts,
        faults=Faults(options.crash_after, options.failing_deliveries),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.engine",
        description="An AI-agent engine in small: webhooks in, turns that know the earlier ones, replies out.\n"
        "The model is scripted, and nothing leaves this machine.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    seconds = partial(add, metavar="SECONDS", type=float)
    add("--play", action="store_true", help="post invented webhooks to engines of its own, and explain")
    add("--ledger", metavar="ADDRESS", help="a running sidecar: unix:///path or 127.0.0.1:port; else its own")
    add("--seat", metavar="HANDLE", default="triage", help="whose turns it runs (default: %(default)s)")
    add("--folder", metavar="DIR", type=Path, help="where its files stay; else a temporary one, removed at the end")
    add("--port", type=int, default=8040, help="on 127.0.0.1, 0 for a free one (default: %(default)s)")
    seconds("--quiet", default=1.0, help="of quiet before a batch is sealed (default: %(default)s)")
    seconds("--thinking", default=0.0, help="that the model takes for a round (default: %(default)s)")
    seconds("--append-seconds", default=10.0, help="that a dead sidecar may hold a turn (default: %(default)s)")
    add("--no-prompts", action="store_true", help="do not print each turn's first prompt")
    add("--failing-deliveries", metavar="N", type=int, default=0, help="let the first N deliveries fail")
    add("--crash-after", choices=POINTS, help="SIGKILL itself there")
    return parser
