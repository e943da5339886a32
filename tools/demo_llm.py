"""Plays turns through a real sidecar and a small real model, and shows what the next turn receives: `make demo-llm`.

The words of so small a model are poor, and that is the point: whatever it writes, the block stays true. Real turns are
played where TURNLEDGER_DATA names their folder, invented ones where it is unset.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from turnledger import Deadlines, Event, History, Ledger, OrderFilled, Stats
from turnledger.openai import AsyncOpenAIRewriter

from tests.client.real_sidecar import real_sidecar
from tests.replay.turns import Turn, record
from tools.llm_story import CONVERSATION, SEAT, story, untrue

ROOT: Final = Path(__file__).resolve().parents[1]
SERVER: Final = ROOT / "tools" / "llm_server.py"

#: A model of this size on two cores takes seconds for each order, and minutes are nobody's wait here.
DEADLINES: Final = Deadlines(begin=30, complete=30, rewrite=300, close=30)

#: Tokens of an answer: an end for a model that repeats itself, and past every limit in bytes, so that what it cuts is
#: told apart from what would have fitted.
COMPLETION_TOKENS: Final = 160

#: Entries kept: all that are played, so that most of them stand in the account, where their notes are shown.
MAX_ENTRIES: Final = 200


@dataclass
class Outcome:
    """What playing came to. `wrong` are lines of any block that said something untrue."""

    stats: Stats = field(default_factory=Stats)
    filled: list[OrderFilled] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    history: History | None = None


def main() -> None:
    """Play, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=60, help="how many turns to play (default: 60)")
    parser.add_argument("--server-python", default=str(ROOT / ".venv-llm" / "bin" / "python"))
    given = parser.parse_args()
    began = time.monotonic()
    with real_model(given.server_python) as url, real_sidecar(MAX_ENTRIES) as target:
        print(f"model at {url}, sidecar at {target}")
        outcome = asyncio.run(play(target, url, story(given.turns)))
    _summary(outcome, time.monotonic() - began)
    sys.exit(bool(outcome.wrong))


@contextmanager
def real_model(python: str) -> Iterator[str]:
    """A small model behind an OpenAI-compatible server of its own; gives the base URL."""
    server = subprocess.Popen(
        [python, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        line = server.stdout.readline() if server.stdout else ""
        if not line.startswith("listening "):
            raise RuntimeError(f"the model's server did not start: {python} {SERVER}")
        yield line.removeprefix("listening ").strip()
    finally:
        server.terminate()
        server.communicate()


async def play(target: str, url: str, turns: list[Turn]) -> Outcome:
    """Each turn from its begin to its receipt, its orders awaited, as an engine's pauses would leave time for them."""
    outcome = Outcome()

    def heard(event: Event) -> None:
        if isinstance(event, OrderFilled):
            outcome.filled.append(event)

    rewriter = AsyncOpenAIRewriter(
        base_url=url,
        model="small",
        api_key="none",
        timeout=DEADLINES.rewrite,
        extra_body={"max_completion_tokens": COMPLETION_TOKENS, "max_tokens": COMPLETION_TOKENS},
    )
    async with Ledger(target, deadlines=DEADLINES, rewriter=rewriter, on_event=heard) as ledger:
        printed = 0
        for number, turn in enumerate(turns, start=1):
            began = time.monotonic()
            receipt = await record(ledger, turn)
            took = time.monotonic() - began
            if not receipt.in_ledger:
                raise RuntimeError(f"turn {number} was not recorded: {receipt.failure}")
            await ledger.drain(DEADLINES.rewrite)
            outcome.history = await _history(ledger, number)
            await ledger.drain(DEADLINES.rewrite)
            outcome.wrong += untrue(outcome.history.text, turns)
            print(_line(number, len(turns), took, time.monotonic() - began, outcome.filled[printed:]), flush=True)
            printed = len(outcome.filled)
        outcome.stats = ledger.stats
    await rewriter.close()
    return outcome


async def _history(ledger: Ledger, number: int) -> History:
    turn = await ledger.begin(
        agent_handle=SEAT, conversation_key=CONVERSATION, turn_id="next-turn", work_key=f"next-{number}"
    )
    if turn.history is None:
        raise RuntimeError(f"the history could not be read: {turn.read_failure}")
    return turn.history


def _line(number: int, count: int, turn_s: float, orders_s: float, filled: list[OrderFilled]) -> str:
    """One turn's progress."""
    told = ", ".join(f"{event.kind} {event.verdict or event.outcome} ({event.calls} calls)" for event in filled)
    return f"turn {number:3}/{count}  {1000 * turn_s:5.0f} ms  orders {orders_s:5.1f} s  {told or 'no order'}"


def _summary(outcome: Outcome, seconds: float) -> None:
    history, stats = outcome.history, outcome.stats
    print("\nThe next turn receives:\n")
    for line in history.text.split("\n") if history else ():
        print("   │ " + line)
    verdicts = Counter(f"{event.kind} {event.verdict or event.outcome}" for event in outcome.filled)
    times = sorted(event.seconds for event in outcome.filled) or [0.0]
    print(f"\n{len(outcome.filled)} orders, {stats.rewriter_calls} calls of the model, in {seconds:.0f} s")
    print(f"   {', '.join(f'{count} {verdict}' for verdict, count in verdicts.most_common())}")
    print(f"   {stats.rewriter_prompt_tokens} tokens in, {stats.rewriter_completion_tokens} out")
    print(f"   an order took {times[len(times) // 2]:.1f} s in the middle, {times[-1]:.1f} s at most")
    if history:
        print(f"block: {history.shown} whole, {history.condensed} condensed, {history.left_out} left out, ", end="")
        print(f"{history.no_longer_kept} no longer kept, {history.bytes} bytes")
    print(f"lines that say something untrue of a delivery, over all blocks: {len(outcome.wrong)}")


if __name__ == "__main__":
    main()
