"""Calls that share one commit: one of them is bad, or the commit itself fails; what that costs the others."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest import mock

import grpc.aio
from turnledger.v1 import record_pb2

from sidecar.store import settle
from sidecar.store.files import check_file
from tests.support import asking
from tests.support.faulty_disk import faulty_disk
from tests.support.patience import PATIENCE_S, eventually
from tests.support.refusal import read_refusal
from tests.support.running import Caller, calling, settings, started
from tests.support.stores import beside
from tests.torture.experiment import Experiment, Finding, Say, Scale
from tests.torture.trouble import KINDS, Kind, Trouble, counting

#: Appends of one shared commit, beside the bad call.
_CROWD: Final = 12

#: Of the bug that is raised; it must not reach a caller.
_NEEDLE: Final = "qz7Xbug"

#: What the bad calls are, and what each is told.
_BAD: Final = {"a damaged entry": ("DATA_LOSS", "STORE_CORRUPT"), "a bug": ("INTERNAL", "INTERNAL")}


@dataclass(slots=True)
class _Round:
    """What the calls of one shared commit came to."""

    statuses: list[tuple[str, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """Each bad call among good ones; each fault of the disk at each operation of the shared commit."""
    chance = random.Random(scale.seed)
    findings = []
    for number, (what, told) in enumerate(_BAD.items()):
        findings.append(await _with_a_bad_one(folder / f"bad-{number}", what, told, 1 if scale.quick else 25))
        say(findings[-1].promise)
    for number, kind in enumerate(each for each in KINDS[:-1] if each.operations <= {"write", "sync"}):
        if finding := await _with_a_fault(folder / f"fault-{number}", kind, chance if scale.quick else None):
            findings.append(finding)
            say(f"{finding.promise}: {finding.figures}")
    return findings


async def _with_a_bad_one(folder: Path, what: str, told: tuple[str, str], rounds: int) -> Finding:
    broken: list[str] = []
    await asyncio.to_thread(folder.mkdir)
    with faulty_disk() as disk:
        async with started(settings(folder), vfs=disk.name) as app, calling(app.address.target) as caller:
            await caller.record.Append(asking.append("bad", conversation_key="bad", entry=asking.entry(unsent="x")))
            if what == "a damaged entry":
                with beside(folder / "store.db") as db:
                    db.execute("UPDATE conversation_sessions SET checksum = zeroblob(16)")
            with mock.patch("sidecar.store.store.settle", settle.settle if what == "a damaged entry" else _fail):
                for number in range(rounds):
                    one = _Round()
                    async with _held(app):
                        calls = [_append(caller, f"c{number}", each, one) for each in range(_CROWD)]
                        bad = caller.record.Settle(asking.settle("bad", conversation_key="bad"), timeout=PATIENCE_S)
                        calls.insert(number % _CROWD, _status(bad, one))
                        tasks = [asyncio.create_task(call) for call in calls]
                        await eventually(lambda: _waiting(app, _CROWD + 1))
                    await asyncio.gather(*tasks)
                    if one.statuses != [told]:
                        one.broken.append(f"refused were {one.statuses}, expected {told} once")
                    broken += one.broken + await _missing(caller, f"c{number}")
    return Finding(
        f"{what.capitalize()} in a shared commit fails alone, told as {' '.join(told)}",
        f"{rounds} commits of {_CROWD + 1} calls",
        broken,
    )


async def _with_a_fault(folder: Path, kind: Kind, chance: random.Random | None) -> Finding | None:
    """None for a kind that no commit meets."""
    broken: list[str] = []
    met = 0
    await asyncio.to_thread(folder.mkdir)
    with faulty_disk() as disk:
        async with started(settings(folder), vfs=disk.name) as app, calling(app.address.target) as caller:
            await caller.record.Append(asking.append("warm"))
            async with _held(app):
                tasks = [asyncio.create_task(_append(caller, "counted", each, _Round())) for each in range(_CROWD)]
                await eventually(lambda: _waiting(app, _CROWD))
                counted = counting(disk)
            await asyncio.gather(*tasks)
            places = range(sum(number for operation, number in counted.items() if operation in kind.operations))
            disk.heal()
            tries = [(first, lasting) for first in places for lasting in (False, True)]
            if chance is not None:  # the first that lasts is met for certain
                tries = tries[1:2] + chance.sample(tries[2:], min(1, len(tries[2:])))
            for first, lasting in tries:
                one, name = _Round(), f"{first}-{lasting}"
                async with _held(app):
                    tasks = [asyncio.create_task(_append(caller, name, each, one)) for each in range(_CROWD)]
                    await eventually(lambda: _waiting(app, _CROWD))
                    trouble = Trouble(disk, kind, first, lasting=lasting)
                await asyncio.gather(*tasks)
                disk.heal()
                met += trouble.met > 0
                if one.statuses and not lasting:
                    one.broken.append(f"a fault that passed was told as {one.statuses}")
                one.broken += [f"told as {status}" for status in set(one.statuses) - {kind.told}]
                again = _Round()
                await asyncio.gather(*(_append(caller, name, each, again) for each in range(_CROWD)))
                one.broken += [f"refused with {status} though the disk is well" for status in again.statuses]
                broken += [f"{way} ({kind.name} at {name})" for way in one.broken + await _missing(caller, name)]
    if not tries:
        return None
    if not check_file(folder / "store.db", lambda _: None).sound:
        broken.append("the store does not pass the check")
    if not met:
        broken.append("nothing met it")
    return Finding(
        f"{kind.name.capitalize()} in a shared commit: one that passes costs nobody their turn, one that lasts is told"
        f" as {' '.join(kind.told)}; each turn is there once after a retry",
        f"{len(tries)} commits of {_CROWD} turns; {met} met it",
        broken,
    )


@asynccontextmanager
async def _held(app: Any) -> AsyncIterator[None]:
    """Hold the writer at work, so that what comes meanwhile shares the next commit."""
    reached, opened = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        reached.set()
        opened.wait(PATIENCE_S)

    holding = asyncio.create_task(app._store._alone(hold))  # without a commit of its own
    await asyncio.to_thread(reached.wait, PATIENCE_S)
    try:
        yield
    finally:
        opened.set()
        await holding


async def _waiting(app: Any, calls: int) -> bool:
    waiting: int = app._store.waiting()["writer"]
    return waiting >= calls


def _fail(*_: object) -> None:
    raise ZeroDivisionError(_NEEDLE)


async def _append(caller: Caller, conversation: str, number: int, one: _Round) -> None:
    entry = asking.entry(reply=_said(number))
    request = asking.append(f"w{number}", conversation_key=conversation, entry=entry)
    answer: record_pb2.AppendResponse | None = await _status(caller.record.Append(request, timeout=PATIENCE_S), one)
    if answer is not None and answer.disposition == record_pb2.DISPOSITION_SKIPPED:
        one.broken.append("a turn was skipped")


async def _status(call: Any, one: _Round) -> Any:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        refusal = read_refusal(error)
        one.statuses.append((refusal.code.name, refusal.reason))
        if _NEEDLE in refusal.raw:
            one.broken.append("the text of a bug reached a caller")
        return None


async def _missing(caller: Caller, conversation: str) -> list[str]:
    text = (await caller.render.History(asking.history(conversation_key=conversation))).history.text
    times = {number: text.count(f"| {_said(number)}") for number in range(_CROWD)}
    return [f"a turn is shown {count} times" for count in times.values() if count != 1]


def _said(number: int) -> str:
    return f"said {number}. " + "and more " * 60 + "(end)"


EXPERIMENT: Final = Experiment("shared", "calls that share a commit, one of them bad, or the commit itself", run)
