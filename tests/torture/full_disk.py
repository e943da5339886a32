"""A disk that is really full: a small file system in memory, filled by the ledger itself and by others."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import grpc.aio
from turnledger.v1 import record_pb2

from tests.support import asking
from tests.support.refusal import read_refusal
from tests.support.running import Caller, calling, settings, started
from tests.torture.experiment import Experiment, Finding, Say, Scale
from tests.torture.file_itself import run_command

_SIZE_MIB: Final = 40


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """Filled and freed, several times."""
    promise = (
        "On a disk that is really full turns are refused as STORE_FULL; reads, Forget, sweep and the emptying of the"
        " log go on, nothing acknowledged is lost, and turns are taken again once there is room"
    )
    if os.geteuid() != 0:
        return [Finding(promise, "not tried: a file system is mounted by root alone", ["needs root"])]
    rounds = 1 if scale.quick else 10
    await run_command("mount", "-t", "tmpfs", "-o", f"size={_SIZE_MIB}m", "tmpfs", str(folder))
    broken: list[str] = []
    taken = refused = forgotten = 0
    try:
        async with started(settings(folder)) as app, calling(app.address.target) as caller:
            for number in range(rounds):
                fresh, reason = await _fill(caller, number)
                taken += fresh
                refused += 1
                if reason != "STORE_FULL":
                    broken.append(f"a full disk was told as {reason}")
                (folder / "filler").write_bytes(b"")
                _grab(folder / "filler")  # and others take what was left
                broken += await _still_works(app, caller, number, fresh)
                forgotten += fresh
                (folder / "filler").unlink()
                answer = await caller.record.Append(asking.append(f"room{number}"))
                if answer.disposition != record_pb2.DISPOSITION_RECORDED:
                    broken.append("no turn was taken once there was room")
                say(f"filled and freed {number + 1} times, {fresh} turns")
    finally:
        await run_command("umount", str(folder))
    return [Finding(promise, f"{_SIZE_MIB} MiB filled {rounds} times by {taken} turns, and forgotten again", broken)]


async def _fill(caller: Caller, number: int) -> tuple[int, str]:
    """Turns of 200 KB until one is refused. How many went in, and the refusal's reason."""
    for taken in range(10_000):
        entry = asking.entry(reply=f"{number} {taken} " + "x" * 200_000)
        request = asking.append(f"w{number}-{taken}", conversation_key=f"c{number}-{taken}", entry=entry)
        try:
            await caller.record.Append(request)
        except grpc.aio.AioRpcError as error:
            return taken, read_refusal(error).reason
    return 10_000, "nothing"


def _grab(filler: Path) -> None:
    """Take every byte that is left."""
    with filler.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass


async def _still_works(app: object, caller: Caller, number: int, taken: int) -> list[str]:
    """Everything that frees or reads, on the full disk; in the end all of what filled it is forgotten."""
    broken = []
    for each in {0, taken // 2, taken - 1}:
        history = (await caller.render.History(asking.history(conversation_key=f"c{number}-{each}"))).history
        if f"| {number} {each} xxx" not in history.text:
            broken.append("an acknowledged turn is not shown on the full disk")
    try:
        await app._store.sweep(1, 20)  # type: ignore[attr-defined]
    except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
        broken.append(f"the sweep failed: {error}")
    for each in range(taken):
        scope = asking.forget_turn(f"w{number}-{each}", conversation=f"c{number}-{each}")
        try:
            answer = await caller.record.Forget(scope)
        except grpc.aio.AioRpcError as error:
            broken.append(f"a Forget was refused: {read_refusal(error).reason}")
            continue
        if (answer.forgotten, answer.erasure) != (1, record_pb2.ERASURE_COMPLETE):
            broken.append(f"a Forget forgot {answer.forgotten}, erasure {answer.erasure}")
    await asyncio.sleep(0)
    return broken


EXPERIMENT: Final = Experiment("full", "a file system that is really full", run)
