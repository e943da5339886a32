"""Far past capacity, and mixed load for minutes with clients that are slow, cancel and vanish."""

import asyncio
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc.aio

from sidecar.store.files import check_file
from tests.support import asking
from tests.support.refusal import read_refusal
from tests.support.running import Caller, calling, process
from tests.torture.auditor import Auditor
from tests.torture.crash import OverTheWire
from tests.torture.experiment import Experiment, Finding, Say, Scale
from tests.torture.standing import read_standing

_CALLERS: Final = 32
_ROOM: Final = 32
_CROWD: Final = 600

#: Growth over the last half of the load that counts as a leak: a share of resident memory, and numbers of the others.
_GROWTH: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Held:
    """What a process holds: MiB of memory, threads, descriptors, and bytes of its log."""

    memory: float
    threads: int
    descriptors: int
    log: int

    def __str__(self) -> str:
        log = f"{self.log / 2**20:.1f} MiB of log"
        return f"{self.memory:.0f} MiB, {self.threads} threads, {self.descriptors} descriptors, {log}"


def _held(pid: int, store: Path) -> _Held:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    log = store.with_name(store.name + "-wal")
    return _Held(
        int(status["VmRSS"].split()[0]) / 1024,
        int(status["Threads"]),
        len(list(Path(f"/proc/{pid}/fd").iterdir())),
        log.stat().st_size if log.exists() else 0,
    )


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """The crowd, then the minutes."""
    store, listen = folder / "store.db", f"unix://{folder}/s"
    room = {"TURNLEDGER_LIMITS_CONCURRENT_CALLS": str(_ROOM)}
    async with process(listen, store=folder / "crowd.db", variables=room) as sidecar:
        await sidecar.says("the store is open")
        findings = [await _overload(sidecar.target, 1 if scale.quick else 20)]
    say(findings[0].figures)
    async with process(listen, store=store) as sidecar:
        await sidecar.says("the store is open")
        findings.append(await _minutes(sidecar.pid, sidecar.target, store, 3 if scale.quick else 600, scale, say))
        sidecar.send(signal.SIGTERM)
        findings.append(Finding("After it the process ends in order", "SIGTERM", await _orderly(sidecar)))
    return findings


async def _orderly(sidecar: Any) -> list[str]:
    code = await sidecar.ended()
    return [] if code == 0 else [f"it ended with {code}"]


async def _overload(target: str, rounds: int) -> Finding:
    """Hundreds at once where there is room for few: each is served or shed, and the next one is served at once."""
    answers: Counter[str] = Counter()
    broken: list[str] = []
    slowest = 0.0
    async with calling(target) as caller:
        for number in range(rounds):
            await asyncio.gather(*(_one(caller, f"{number}-{each}", answers, broken) for each in range(_CROWD)))
            began = time.monotonic()
            await caller.render.History(asking.history())
            slowest = max(slowest, time.monotonic() - began)
    if slowest > 1:
        broken.append(f"the next call took {slowest:.1f} s")
    if not answers["OVERLOADED"]:
        broken.append("nothing was shed")
    return Finding(
        "Far past capacity calls are shed with OVERLOADED and RetryInfo, and the next one is served at once",
        f"{rounds} times {_CROWD} Appends at once where {_ROOM} have room: {answers['OK']} served,"
        f" {answers['OVERLOADED']} shed; the next call after {slowest * 1000:.0f} ms at most",
        broken,
    )


async def _one(caller: Caller, work_key: str, answers: Counter[str], broken: list[str]) -> None:
    try:
        await caller.record.Append(asking.append(work_key))
        answers["OK"] += 1
    except grpc.aio.AioRpcError as error:
        refusal = read_refusal(error)
        answers[refusal.reason] += 1
        if refusal.reason != "OVERLOADED" or refusal.retry_after_s is None:
            broken.append(f"told as {refusal.code.name} {refusal.reason}")


async def _minutes(pid: int, target: str, store: Path, seconds: float, scale: Scale, say: Say) -> Finding:
    auditor = Auditor(_CALLERS, scale.seed)
    chance = random.Random(scale.seed)
    until = time.monotonic() + seconds
    rude: Counter[str] = Counter()
    looks: list[_Held] = []
    async with calling(target) as caller:
        driving = asyncio.ensure_future(auditor.drive(OverTheWire(caller)))
        others = [asyncio.ensure_future(_rude(target, chance, until, rude)) for _ in range(6)]
        before = _held(pid, store)
        while time.monotonic() < until:
            await asyncio.sleep(min(1.0, seconds / 10))
            looks.append(_held(pid, store))
            if len(looks) % 60 == 0:
                say(str(looks[-1]))
        await asyncio.gather(*others)
        auditor.stop()
        await driving
        after = _held(pid, store)
    broken = _growths(looks, quick=scale.quick)
    effects = ", ".join(f"{count} {work}s" for work, count in sorted(auditor.figures.acknowledged.items()))
    manners = ", ".join(f"{count} {manner}" for manner, count in sorted(rude.items()))
    found = await asyncio.to_thread(check_file, store, lambda _: None)
    auditor.audit(await asyncio.to_thread(read_standing, store, auditor.turns))
    if not found.sound:
        broken.append("the check found damage")
    return Finding(
        f"Under mixed load at {_CALLERS} callers with rude ones beside them nothing is lost and nothing leaks",
        f"{seconds:.0f} s: {effects} acknowledged, each there once; {manners}; before {before}; after {after}",
        [*broken, *auditor.figures.broken],
    )


def _growths(looks: Sequence[_Held], *, quick: bool) -> list[str]:
    """What grew between the middle and the end. A quick look is too short to tell growth from warming up."""
    if quick:
        return [f"the log grew to {looks[-1].log} bytes"] if looks[-1].log > 64 * 2**20 else []
    third = len(looks) // 4
    middle, end = looks[2 * third : 3 * third], looks[-third:]

    def mean(part: Sequence[_Held], of: str) -> float:
        return sum(float(getattr(each, of)) for each in part) / len(part)

    growths = {of: mean(end, of) / max(mean(middle, of), 1) - 1 for of in ("memory", "threads", "descriptors")}
    broken = [f"{of} grew by {growth:.0%}" for of, growth in growths.items() if growth > _GROWTH]
    return broken + ([f"the log grew to {looks[-1].log} bytes"] if looks[-1].log > 64 * 2**20 else [])


async def _rude(target: str, chance: random.Random, until: float, rude: Counter[str]) -> None:
    """A client that cancels, closes its connection in the middle, sets hopeless deadlines, or is killed."""
    number = 0
    while time.monotonic() < until:
        number += 1
        manner = chance.choice(["cancelled", "closed", "hopeless deadlines", "slow", "killed"])
        if manner == "killed" and chance.random() < 0.95:
            manner = "cancelled"
        rude[manner] += 1
        work_key = f"rude-{id(asyncio.current_task())}-{number}"
        request = asking.append(work_key, conversation_key=f"rude-{number % 50}")
        if manner == "killed":
            await _killed(target)
            continue
        async with calling(target) as caller:
            call = caller.record.Append(request, timeout=0.0005 if manner == "hopeless deadlines" else 10)
            if manner == "cancelled":
                await asyncio.sleep(chance.uniform(0, 0.005))
                call.cancel()
            elif manner == "slow":
                await asyncio.sleep(0.05)
            if manner != "closed":
                await asyncio.wait({asyncio.ensure_future(_settled(call))})


async def _settled(call: Any) -> None:
    with suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
        await call


async def _killed(target: str) -> None:
    """A client process with calls under way, killed."""
    client = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.torture.crowd", target, "2")
    await asyncio.sleep(1.5)
    if client.returncode is None:
        client.kill()
    await client.wait()


EXPERIMENT: Final = Experiment("load", "far past capacity, and minutes of mixed load with rude clients", run)
