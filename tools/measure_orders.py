"""What orders and notes cost and bring over a long conversation: `python -m tools.measure_orders`.

The long conversations of the folder that TURNLEDGER_DATA names, joined into one of 200 turns with bulky replies, go
through a real store with `max_entries` 200. A scripted rewriter, honest and without a network, fills every order. What
is measured is printed as a Markdown table. Tokens are estimated: a quarter of the bytes.
"""

import asyncio
import hashlib
import itertools
import json
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from msgspec import structs
from turnledger.compose import approximate_tokens

from sidecar.config.settings import ConversationSession
from sidecar.domain.calls import CallKind, SuppliedCall, keep
from sidecar.domain.eligibility import Conversation, RunEnd, TurnKey
from sidecar.domain.entry import Entry
from sidecar.domain.fit import Verdict
from sidecar.domain.orders import Order
from sidecar.domain.retention import TrimBound
from sidecar.services.record import CompletedTurn, Fit, Record
from sidecar.services.render import Render, TurnStart
from sidecar.store.store import Store

TURNS: Final = 200
READS: Final = 500
_LONG: Final = TurnKey(Conversation("seat", "joined"), "")
_BARE: Final = TurnKey(Conversation("seat", "joined, no model"), "")
_SHORT: Final = TurnKey(Conversation("seat", "twenty"), "")


@dataclass
class Spent:
    """Orders issued and filled, the tokens that went in and came out, and how often each entry's note was asked for."""

    issued: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    prompt_tokens: int = 0
    rewrite_tokens: int = 0
    notes_of: Counter[str] = field(default_factory=Counter)


def main() -> None:
    """Print the table."""
    lines = (Path(os.environ["TURNLEDGER_DATA"]) / "turns-long.jsonl").read_text(encoding="utf-8").splitlines()
    rows = itertools.islice(itertools.cycle([json.loads(line) for line in lines]), TURNS)
    turns = [_turn(row, place) for place, row in enumerate(rows)]
    print("| measured | |\n|---|---|")
    for what, found in asyncio.run(_measure(turns)):
        print(f"| {what} | {found} |")


def rewrite(order: Order) -> str:
    """The order's text cut down to whole words of it, the quoted ones first, in their order, within the limit."""
    quoted = [line[2:] for line in order.text.splitlines() if line.startswith("| ")]
    words = " ".join(quoted or [order.text]).split()
    ends = itertools.accumulate(len(word.encode()) + 1 for word in words)
    return " ".join(word for word, end in zip(words, ends, strict=True) if end <= order.limit)


def _turn(row: dict[str, Any], place: int) -> CompletedTurn:
    """The turn with its reply made bulky: six times over, as reports and listings are."""
    supplied = tuple(
        SuppliedCall(
            call["name"], call["arguments"], CallKind(call["kind"].lower()), call["failed"], call.get("error") or ""
        )
        for call in row["calls"]
    )
    texts = {name: row[name] for name in ("trigger", "intent", "completed_work", "blocked_on", "decision")}
    entry = Entry(
        **texts,
        turn_id=hashlib.sha256(str(place).encode()).hexdigest()[:32],
        completed_at=row["completed_at"],
        calls=tuple(keep(call) for call in supplied),
        delivered=row["delivered"],
        final_text="\n\n".join([row["final_text"]] * 6),
    )
    return CompletedTurn(entry, supplied)


async def _measure(turns: list[CompletedTurn]) -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store.db", clock=lambda: int(time.time()))
        store.start()
        try:
            await store.opened()
            return await _measure_in(store, turns)
        finally:
            await store.close()


async def _measure_in(store: Store, turns: list[CompletedTurn]) -> list[tuple[str, str]]:
    ids = itertools.count()
    session = ConversationSession(max_entries=TURNS)
    record = Record(store, lambda: session, lambda: f"entry-{next(ids)}", TrimBound(TURNS))
    render = Render(store, lambda: session, lambda _round, _size: None)
    spent = Spent()
    for place, turn in enumerate(turns):
        answer = await record.append(replace(_LONG, work_key=f"w{place}"), RunEnd.COMPLETED, turn)
        await _fill(record, answer.orders, spent)
        await _fill(record, (await render.history(_LONG, None)).orders, spent)
        await record.append(replace(_BARE, work_key=f"w{place}"), RunEnd.COMPLETED, turn)
    for place, turn in enumerate(turns[:20]):
        short = structs.replace(turn.entry, final_text=turn.entry.final_text[:300], calls=turn.entry.calls[:2])
        await record.append(replace(_SHORT, work_key=f"w{place}"), RunEnd.COMPLETED, CompletedTurn(short, ()))
    bare = await render.history(_BARE, None)
    last, twenty = await render.history(_LONG, None), await render.history(_SHORT, None)
    return [
        *_costs(spent),
        *_shown(last),
        ("without a model: whole, facts alone, left out", _without_a_model(bare)),
        ("without a model: notes that one History asks for", f"{len(bare.orders)}"),
        ("History of this conversation", await _timed(render, _LONG)),
        (
            f"History of {twenty.history.shown} whole entries ({twenty.history.size} bytes)",
            await _timed(render, _SHORT),
        ),
    ]


async def _fill(record: Record, orders: Iterable[Order], spent: Spent) -> None:
    for order in orders:
        text = rewrite(order)
        spent.issued += 1
        spent.prompt_tokens += approximate_tokens(len((order.instructions + order.text + order.closing).encode()))
        spent.rewrite_tokens += approximate_tokens(len(text.encode()))
        if not order.order_id.digest:
            spent.notes_of[order.order_id.ref.entry_id] += 1
        [result] = await record.fit(_LONG.conversation, [Fit(str(order.order_id), order.text, text)])
        spent.verdicts[result.judgement.verdict] += 1


def _costs(spent: Spent) -> list[tuple[str, str]]:
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in spent.verdicts.items())
    most = max(spent.notes_of.values(), default=0)
    return [
        ("orders issued", f"{spent.issued}, of them {spent.notes_of.total()} for notes"),
        ("verdicts", verdicts),
        ("tokens of all prompts (estimate)", f"{spent.prompt_tokens}"),
        ("tokens of all rewrites (estimate)", f"{spent.rewrite_tokens}"),
        ("prompt tokens a turn (estimate)", f"{spent.prompt_tokens // TURNS}"),
        ("times that one entry's note was asked for, at most", f"{most}"),
    ]


def _shown(last: TurnStart) -> list[tuple[str, str]]:
    history = last.history
    bare = history.text.count(" (no note)\n")
    return [
        ("last block", f"{history.size} bytes"),
        ("whole", f"{history.shown}"),
        ("condensed with a note", f"{history.condensed - bare}"),
        ("facts alone", f"{bare}"),
        ("left out, counted", f"{history.left_out}"),
    ]


def _without_a_model(bare: TurnStart) -> str:
    history = bare.history
    return f"{history.shown}, {history.condensed}, {history.left_out}"


async def _timed(render: Render, key: TurnKey) -> str:
    times = []
    for _ in range(READS):
        start = time.perf_counter()
        await render.history(key, None)
        times.append((time.perf_counter() - start) * 1_000)
    return f"median {statistics.median(times):.2f} ms, p99 {statistics.quantiles(times, n=100)[98]:.2f} ms"


if __name__ == "__main__":
    main()
