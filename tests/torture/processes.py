"""Other processes: a second sidecar, what a killed one left, foreign programs on the store, and clocks that leap."""

import asyncio
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from turnledger.v1 import record_pb2

from sidecar.app import app as app_module
from tests.support import asking
from tests.support.patience import PATIENCE_S, served
from tests.support.refusal import refused
from tests.support.running import calling, process, settings, started
from tests.support.stores import pinned
from tests.torture.experiment import Experiment, Finding, Say, Scale

#: Another program: holds a write lock, or writes a row of its own, until it is told to end.
_FOREIGN: Final = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=5)
db.execute("BEGIN IMMEDIATE")
if sys.argv[2] == "writes":
    db.execute("INSERT INTO conversation_sessions (agent_handle, conversation_key, work_key, turn_id, entry_id,"
               " ordinal, version, trimmed, rendered_bytes, entry, checksum, created_at)"
               " VALUES ('scout', 'jira:POC-7', 'foreign', 't', 'e', 50, 1, 0, 9, x'00', x'00', 0)")
    db.execute("COMMIT")
print("held", flush=True)
sys.stdin.read()
"""

_YEARS_S: Final = 5 * 365 * 24 * 3600


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """Each in a folder of its own."""
    findings = []
    for attempt in (_two_at_once, _left_behind, _locked, _foreign_row, _pinned, _clocks):
        place = folder / attempt.__name__
        place.mkdir()
        findings.append(await attempt(place, scale))
        say(findings[-1].promise)
    return findings


async def _two_at_once(place: Path, scale: Scale) -> Finding:
    """Two that start together: one serves, the other waits, and takes over when the first one ends."""
    rounds = 1 if scale.quick else 10
    broken = []
    for number in range(rounds):
        store, listen = place / f"{number}.db", f"unix://{place}/{number}"
        async with process(listen, store=store) as one, process(listen, store=store) as other:  # noqa: SIM117
            async with calling(one.target) as caller:
                first = await served(lambda: caller.record.Append(asking.append("a"), timeout=PATIENCE_S))
                owner, waiting = (one, other) if "the store is open" in one.log else (other, one)
                await asyncio.sleep(0.3)
                if "the store is open" in waiting.log:
                    broken.append("two sidecars have one store open")
                owner.send(signal.SIGTERM)
                await owner.ended()
                again = await served(lambda: caller.record.Append(asking.append("a"), timeout=PATIENCE_S))
                if (again.disposition, again.entry_id) != (record_pb2.DISPOSITION_DUPLICATE, first.entry_id):
                    broken.append("what the first one recorded is not what the second one knows")
    return Finding(
        "Of two sidecars on one store and socket one serves and the other takes over, and calls only wait",
        f"{rounds} times two started at once",
        broken,
    )


async def _left_behind(place: Path, scale: Scale) -> Finding:
    """The lock and the socket of a killed process hold nobody up."""
    rounds = 2 if scale.quick else 20
    slowest = 0.0
    for _ in range(rounds):
        async with process(f"unix://{place}/s", store=place / "store.db") as sidecar:
            began = time.monotonic()
            await sidecar.says("the store is open")
            slowest = max(slowest, time.monotonic() - began)
            sidecar.send(signal.SIGKILL)
            await sidecar.ended()
    broken = [f"a start took {slowest:.1f} s"] if slowest > PATIENCE_S / 2 else []
    return Finding(
        "A socket and a lock that a killed process left hold nobody up",
        f"{rounds} starts after SIGKILL, {slowest:.1f} s at most, Python's own start among them",
        broken,
    )


async def _locked(place: Path, _: Scale) -> Finding:
    """A foreign program holds the write lock: writes wait, then are told so; reads go on; it recovers by itself."""
    broken = []
    async with started(settings(place)) as app, calling(app.address.target) as caller:
        await caller.record.Append(asking.append("before"))
        foreign = await _foreign(place / "store.db", "holds")
        began = time.monotonic()
        refusal = await refused(caller.record.Append(asking.append("a"), timeout=PATIENCE_S))
        took = time.monotonic() - began
        if (refusal.code.name, refusal.reason) != ("UNAVAILABLE", "STORE_UNAVAILABLE") or refusal.retry_after_s is None:
            broken.append(f"told as {refusal.code.name} {refusal.reason}")
        if (await caller.render.History(asking.history(), timeout=1)).history.shown != 1:
            broken.append("reads did not go on")
        await _end(foreign)
        if (await caller.record.Append(asking.append("a"))).disposition != record_pb2.DISPOSITION_RECORDED:
            broken.append("a retry was not recorded")
    return Finding(
        "A foreign program that holds the write lock is told as STORE_UNAVAILABLE; reads go on, a retry goes through",
        f"refused after {took:.1f} s",
        broken,
    )


async def _foreign_row(place: Path, _: Scale) -> Finding:
    """A row that another program wrote is no turn of anybody's."""
    async with started(settings(place)) as app, calling(app.address.target) as caller:
        await caller.record.Append(asking.append("before"))
        await _end(await _foreign(place / "store.db", "writes"))
        history = (await caller.render.History(asking.history())).history
        after = await caller.record.Append(asking.append("after"))
    broken = []
    if (history.shown, history.unreadable) != (1, 1):
        broken.append(f"{history.shown} shown, {history.unreadable} unreadable")
    if after.disposition != record_pb2.DISPOSITION_RECORDED:
        broken.append("the next turn was not recorded")
    return Finding("A row of a foreign program is counted as unreadable, and is shown to nobody", "one row", broken)


async def _pinned(place: Path, scale: Scale) -> Finding:
    """A reader that never ends keeps the log; it shrinks by itself once the reader goes."""
    turns = 300 if scale.quick else 5_000
    store = place / "store.db"
    log = place / "store.db-wal"
    async with started(settings(place)) as app, calling(app.address.target) as caller:
        await caller.record.Append(asking.append("before"))
        with pinned(store) as reader:
            for number in range(turns):
                entry = asking.entry(reply="x" * 2_000)
                await caller.record.Append(asking.append(f"w{number}", conversation_key=f"c{number % 50}", entry=entry))
            held = log.stat().st_size
            reader.execute("COMMIT")
        await caller.record.Forget(asking.forget_turn("before"))
        after = log.stat().st_size
    return Finding(
        "The log that a foreign reader pins grows, and is emptied once it goes; appends go on meanwhile",
        f"{turns} turns: {held / 2**20:.1f} MiB while pinned, {after} bytes after the next Forget",
        [] if after == 0 else ["the log did not shrink"],
    )


async def _clocks(place: Path, scale: Scale) -> Finding:
    """The clock leaps by years, both ways, under load: order stays that of recording, and no leap sweeps anything."""
    chance = random.Random(scale.seed)
    turns = 100 if scale.quick else 2_000
    now = time.time()
    before = app_module._now
    broken = []
    try:
        app_module._now = lambda: int(now + chance.choice([-1, 0, 1]) * _YEARS_S)
        async with started(settings(place)) as app, calling(app.address.target) as caller:
            for number in range(turns):
                answer = await caller.record.Append(
                    asking.append(f"w{number}", entry=asking.entry(reply=f"turn {number}."))
                )
                if answer.ordinal != number + 1:
                    broken.append("an ordinal went back")
                if number % 20 == 0:
                    swept = await app._maintenance.sweep()
                    if swept.swept:
                        broken.append(f"a leap of the clock swept {swept.swept} turns")
            text = (await caller.render.History(asking.history())).history.text
    finally:
        app_module._now = before
    places = [text.find(f"turn {number}.") for number in range(turns - 15, turns)]
    if places != sorted(places) or -1 in places:
        broken.append("turns are shown in another order than they were recorded in")
    return Finding(
        "A clock that leaps by years changes no order and sweeps nothing",
        f"{turns} turns, {turns // 20} sweeps",
        broken,
    )


async def _foreign(store: Path, what: str) -> asyncio.subprocess.Process:
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", _FOREIGN, str(store), what, **pipes)  # type: ignore[arg-type]
    assert program.stdout is not None
    assert await program.stdout.readline() == b"held\n"
    return program


async def _end(program: asyncio.subprocess.Process) -> None:
    assert program.stdin is not None
    program.stdin.close()
    await program.wait()


EXPERIMENT: Final = Experiment("processes", "second sidecars, leftovers, foreign programs, leaping clocks", run)
