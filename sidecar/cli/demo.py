"""`turnledger demo`: the main job on a real sidecar, as a person wants to see it."""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Self, TypeVar

import click
import grpc
from turnledger import History, Ledger, Phase, Receipt, Turn
from turnledger.identity import work_key

from sidecar.cli.story import AGENT_HANDLE, CONTEXT, CONVERSATION_KEY, NEXT_TASK, TURNS, Played

T = TypeVar("T")

#: Seconds that the sidecar gets to start and to stop.
_PATIENCE_S: Final = 20.0


@click.command()
def demo() -> None:
    """Play a conversation of several turns through a real sidecar, and show what the next turn receives.

    Everything happens in a temporary folder, which is removed at the end.
    """
    with tempfile.TemporaryDirectory(prefix="turnledger-demo-") as folder:
        asyncio.run(_play(Path(folder)))


async def _play(folder: Path) -> None:
    _title("A sidecar starts")
    with _Sidecar(folder, enabled=True) as sidecar:
        await _answering(sidecar)
        async with Ledger(sidecar.target) as ledger:
            click.echo(f"   process {sidecar.pid}, listening on {sidecar.target}")
            _title(f"The seat {AGENT_HANDLE!r} works on {CONVERSATION_KEY}")
            for number, played in enumerate(TURNS, start=1):
                await _record(ledger, number, played)
            await _redeliver(ledger, TURNS[-1])
            _title("The next turn begins. Its executor receives this user message:")
            await _show_next(ledger)
    _title("The same turn with the switch off (enabled: false):")
    with _Sidecar(folder, enabled=False) as sidecar:
        await _answering(sidecar)
        async with Ledger(sidecar.target) as ledger:
            await _show_next(ledger)


async def _record(ledger: Ledger, number: int, played: Played) -> None:
    turn, read_ms = await _timed(lambda: _begin(ledger, played.turn_id, played.work_key))
    for call in played.calls:
        turn.called(call.name, call.arguments, kind=call.kind, error=call.error, sensitive=call.sensitive)
    receipt, append_ms = await _timed(lambda: _complete(turn, played))
    click.echo(
        f"   turn {number}  {_word(receipt):<9} as entry {receipt.ordinal}"
        f"   history {read_ms:5.1f} ms   append {append_ms:5.1f} ms   {played.about}"
    )


async def _redeliver(ledger: Ledger, played: Played) -> None:
    """What an engine sees whose trigger comes a second time."""
    turn = await _begin(ledger, played.turn_id, played.work_key)
    receipt = await _complete(turn, played)
    seen = "known from the start" if turn.already_recorded else "NOT known"
    click.echo(f"   turn {len(TURNS)}  {_word(receipt):<9} of entry {receipt.ordinal}   the same trigger again: {seen}")


async def _show_next(ledger: Ledger) -> None:
    key = work_key(["jira:comment:90233"])
    turn, read_ms = await _timed(lambda: _begin(ledger, "0195c811-7b20-7e5f-9a08-d3316c2b9e47", key))
    text, compose_ms = await _timed(lambda: turn.user_message(phase=Phase.EXECUTE, context=CONTEXT, task=NEXT_TASK))
    click.echo()
    for line in text.split("\n"):
        click.echo("   │ " + line)
    click.echo()
    _sizes(turn.history, text, read_ms, compose_ms)


def _sizes(history: History | None, text: str, read_ms: float, compose_ms: float) -> None:
    if history is None:
        raise click.ClickException("the history could not be read")
    message = len(text.encode())
    click.echo(
        f"   history {history.state.name}: {history.shown} whole, {history.condensed} condensed, {history.bytes} bytes"
    )
    click.echo(f"   message {message} bytes, about {-(-message // 4)} tokens")
    click.echo(f"   read in {read_ms:.1f} ms, composed in {compose_ms:.1f} ms")


def _begin(ledger: Ledger, turn_id: str, key: str) -> Awaitable[Turn]:
    return ledger.begin(agent_handle=AGENT_HANDLE, conversation_key=CONVERSATION_KEY, turn_id=turn_id, work_key=key)


def _complete(turn: Turn, played: Played) -> Awaitable[Receipt]:
    return turn.complete(
        played.outcome,
        trigger=played.trigger,
        intent=played.intent,
        decision=played.decision,
        completed_work=played.completed_work,
        blocked_on=played.blocked_on,
        completed_at=played.completed_at,
    )


def _word(receipt: Receipt) -> str:
    if receipt.disposition is None:
        raise click.ClickException(f"the turn was not recorded: {receipt.failure}")
    return receipt.disposition.name


async def _timed(work: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    """What the work came to, and how long it took in milliseconds."""
    start = time.perf_counter()
    return await work(), (time.perf_counter() - start) * 1000


async def _answering(sidecar: "_Sidecar") -> None:
    """Wait until the sidecar listens. An engine need not: its client fails open."""
    async with grpc.aio.insecure_channel(sidecar.target) as channel:
        try:
            await asyncio.wait_for(channel.channel_ready(), _PATIENCE_S)
        except TimeoutError as error:
            raise click.ClickException(f"the sidecar did not start:\n{sidecar.log}") from error


def _title(text: str) -> None:
    click.echo()
    click.secho(text, bold=True)


class _Sidecar:
    """`turnledger serve` as a process of its own, its log in the folder."""

    def __init__(self, folder: Path, *, enabled: bool) -> None:
        self._folder = folder
        self._socket = folder / "turnledger.sock"
        self._config = folder / "settings.yaml"
        self._config.write_text(
            f"turn_engine:\n  conversation_session:\n    enabled: {str(enabled).lower()}\n"
            f"sidecar:\n  listen: unix://{self._socket}\n  store: {folder / 'store.db'}\n"
        )

    @property
    def target(self) -> str:
        return f"unix://{self._socket}"

    @property
    def log(self) -> str:
        return (self._folder / "sidecar.log").read_text()

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        with (self._folder / "sidecar.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sidecar", "serve", "--config", str(self._config)], stdout=log, stderr=log
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(_PATIENCE_S)
