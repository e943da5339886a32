"""Each call that the store makes to its disk while it is opened fails in turn, under a server that answers."""

import asyncio
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from unittest import mock

import grpc.aio
from turnledger.v1 import record_pb2, render_pb2

from tests.support import asking
from tests.support.faulty_disk import faulty_disk
from tests.support.patience import PATIENCE_S
from tests.support.refusal import read_refusal
from tests.support.running import Caller, calling, settings, started
from tests.torture.experiment import Experiment, Finding, Say, Scale
from tests.torture.trouble import KINDS, Kind, Trouble, counting

_TURNS: Final = 12

#: Seconds between tries to open the store, so that a run of hundreds takes a minute.
_RETRY_S: Final = 0.02

#: Seconds that trouble lasts once the server answers: the time of some tries.
_TROUBLED_S: Final = 0.1

#: What a call may be told as, whatever the trouble: the store is being opened.
_STARTING: Final = ("UNAVAILABLE", "STORE_UNAVAILABLE")


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """A new store, and one that a kill left with its log; each kind of trouble at each operation of their opening."""
    chance = random.Random(scale.seed)
    (folder / "new").mkdir()
    (folder / "left").mkdir()
    await _filled(folder / "left")
    findings = []
    with mock.patch("sidecar.store.store._RETRY_S", _RETRY_S):
        for kind in KINDS[:-1]:  # a slow disk opens slowly
            findings.append(await _tried(folder, kind, chance if scale.quick else None))
            say(f"{kind.name}: {findings[-1].figures}")
    return findings


async def _filled(folder: Path) -> None:
    """Files as a kill leaves them: some turns in the file, the others in the log."""
    made = folder / "made"
    made.mkdir()
    async with started(settings(made)) as app, calling(app.address.target) as caller:
        for number in range(_TURNS):
            if number == _TURNS // 2:
                await app._store.finish_erasure()
            await caller.record.Append(asking.append(f"w{number}", entry=asking.entry(reply=f"said {number}.")))
        for suffix in ("", "-wal"):  # by another process: to close a live store's file here would drop its locks
            copying = await asyncio.create_subprocess_exec("cp", str(made / f"store.db{suffix}"), str(folder))
            assert await copying.wait() == 0
    await asyncio.to_thread(shutil.rmtree, made)


async def _tried(folder: Path, kind: Kind, chance: random.Random | None) -> Finding:
    broken: list[str] = []
    runs = met = 0
    for state in ("new", "left"):
        count = await _count(folder, state, kind)
        places = [(first, lasting) for first in range(count) for lasting in (False, True)]
        for first, lasting in places if chance is None else chance.sample(places, min(1, len(places))):
            try:
                ways, was_met = await _one(folder, state, kind, first, lasting=lasting)
            except Exception as bug:  # noqa: BLE001  whatever it is, it is a finding
                ways, was_met = [f"the sidecar ended with a bug: {type(bug).__name__}"], True
            broken += [f"{way} ({state}, at {first}, {'lasting' if lasting else 'once'})" for way in ways]
            runs += 1
            met += was_met
    return Finding(
        f"{kind.name.capitalize()} while the store is opened: calls are told so, and it opens by itself once that ends",
        f"{runs} openings of a new store and of one with a log, at each such operation once and lasting from it on;"
        f" {met} met it",
        broken,
    )


async def _count(folder: Path, state: str, kind: Kind) -> int:
    place = await _copy_of(folder, state)
    with faulty_disk() as disk:
        counted = counting(disk)
        async with started(settings(place), vfs=disk.name) as app:
            await app._store.finish_erasure()
            disk.heal()
    return sum(number for operation, number in counted.items() if operation in kind.operations)


async def _one(folder: Path, state: str, kind: Kind, first: int, *, lasting: bool) -> tuple[list[str], bool]:
    """What went wrong, and whether trouble was met."""
    place = await _copy_of(folder, state)
    broken: list[str] = []
    with faulty_disk() as disk:
        trouble = Trouble(disk, kind, first, lasting=lasting)
        async with started(settings(place), vfs=disk.name, opened=False) as app, calling(app.address.target) as caller:
            await asyncio.sleep(_TROUBLED_S if lasting else 0)
            broken += await _history(caller, state, (kind.told, _STARTING))
            if lasting:
                disk.heal()
            try:
                await asyncio.wait_for(app.opened(), PATIENCE_S)
            except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
                return [*broken, f"it did not open by itself: {type(error).__name__}: {error}"], trouble.met > 0
            await app._store.finish_erasure()  # and what it begins with meets trouble too
            disk.heal()
            broken += await _history(caller, state, ())
            answer = await caller.record.Append(asking.append("new"))
            if answer.disposition != record_pb2.DISPOSITION_RECORDED:
                broken.append("no turn was taken afterwards")
    return broken, trouble.met > 0


async def _history(caller: Caller, state: str, told: Sequence[tuple[str, str]]) -> list[str]:
    try:
        history = (await caller.render.History(asking.history(), timeout=PATIENCE_S, wait_for_ready=True)).history
    except grpc.aio.AioRpcError as error:
        status = (error.code().name, read_refusal(error).reason)
        return [] if status in told else [f"History was told {status}"]
    if state == "new":
        return [] if history.state == render_pb2.HISTORY_STATE_EMPTY else ["a new store has a history"]
    missing = [number for number in range(_TURNS) if f"said {number}." not in history.text]
    return ["turns are missing"] if missing else []


async def _copy_of(folder: Path, state: str) -> Path:
    place = folder / "place"
    await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
    await asyncio.to_thread(shutil.copytree, folder / state, place)
    return place


EXPERIMENT: Final = Experiment("opening", "each operation of the disk fails in turn while the store is opened", run)
