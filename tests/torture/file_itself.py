"""The store's file is taken away, replaced, write-protected or hangs under the running sidecar."""

import asyncio
import os
import shutil
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import apsw
import grpc.aio

from sidecar.app.app import App
from sidecar.store.files import check_file
from tests.support import asking
from tests.support.faulty_disk import faulty_disk
from tests.support.patience import PATIENCE_S
from tests.support.refusal import Refusal, read_refusal
from tests.support.running import Caller, calling, settings, started
from tests.torture.experiment import Experiment, Finding, Say, Scale

_DEADLINE_S: Final = 0.5

#: Jobs that may wait with the settings as they are: one for each call, and as many as the app gives beside them.
_MOST_WAITING: Final = 512 + 1_024

#: How much later than its deadline a caller may be told, on a busy machine.
_LATE_S: Final = 2.0


@dataclass(slots=True)
class _Watched:
    """A running sidecar, and what it got wrong."""

    app: App
    caller: Caller
    broken: list[str] = field(default_factory=list)

    async def appends(self, work_key: str, **how: Any) -> Refusal | str:
        """What an Append comes to: a disposition, or a refusal."""
        try:
            answer = await self.caller.record.Append(asking.append(work_key), timeout=how.get("timeout", PATIENCE_S))
        except grpc.aio.AioRpcError as error:
            return read_refusal(error)
        return str(answer.disposition)

    async def told_in(self, seconds: float | None) -> str:
        """The status of a History that may take so long, or as long as the sidecar lets it."""
        try:
            await self.caller.render.History(asking.history(), timeout=seconds)
        except grpc.aio.AioRpcError as error:
            return error.code().name
        return "OK"

    async def shows(self) -> int | str:
        """How many turns History shows, or the reason that it gives."""
        try:
            answer = await self.caller.render.History(asking.history(), timeout=PATIENCE_S)
        except grpc.aio.AioRpcError as error:
            return read_refusal(error).reason
        return int(answer.history.shown)

    def expect(self, what: str, found: object, *expected: object) -> None:
        """Note what is not as expected."""
        if found not in expected:
            self.broken.append(f"{what}: {found}, expected {' or '.join(map(str, expected))}")

    async def lives(self) -> None:
        """Whatever is with the file, rounds are composed."""
        began = time.monotonic()
        answer = await self.caller.render.UserMessage(asking.user_message(), timeout=PATIENCE_S)
        self.expect("UserMessage is composed", "Answer the question." in answer.text, True)
        self.expect("UserMessage is quick", time.monotonic() - began < _LATE_S, True)

    async def is_well(self, component: str) -> bool:
        """What health says of a component, once it has looked again."""
        await asyncio.sleep(1.1)
        return (await self.app._health.states())[component].well


@asynccontextmanager
async def _watched(folder: Path, vfs: str | None = None) -> AsyncIterator[_Watched]:
    async with started(settings(folder), vfs=vfs) as app, calling(app.address.target) as caller:
        watched = _Watched(app, caller)
        watched.expect("the first Append", await watched.appends("before"), "1")
        yield watched


async def _gone(folder: Path, change: Callable[[Path], None]) -> _Watched:
    """Writes are refused rather than sent into a file that nobody will find again."""
    async with _watched(folder) as watched:
        await asyncio.to_thread(change, folder / "store.db")
        refusal = await watched.appends("after")
        watched.expect("Append", getattr(refusal, "reason", refusal), "STORE_UNAVAILABLE")
        watched.expect("History", await watched.shows(), "STORE_UNAVAILABLE")
        watched.expect("health of writing", await watched.is_well("store.writable"), False)
        watched.expect("health of reading", await watched.is_well("store.readable"), False)
        await watched.lives()
    return watched


def _replaced(store: Path) -> None:
    other = store.with_name("other.db")
    shutil.copy(store, other)
    other.replace(store)


def _folder_renamed(store: Path) -> None:
    store.parent.rename(store.parent.with_name("elsewhere"))


async def _hangs(folder: Path, operations: frozenset[str]) -> _Watched:
    """A caller's deadline fires while the disk does not answer; what hung is done once, or not at all, when it does."""
    with faulty_disk() as disk:
        async with _watched(folder, disk.name) as watched:
            await watched.app._store.finish_erasure()
            answers = threading.Event()

            def hang(operation: str, _: str) -> None:
                if operation in operations:
                    answers.wait(30)

            disk.watcher = hang
            began = time.monotonic()
            refusal = await watched.appends("hung", timeout=_DEADLINE_S)
            took = time.monotonic() - began
            code = refusal.code.name if isinstance(refusal, Refusal) else refusal
            watched.expect("Append", code, "DEADLINE_EXCEEDED")
            watched.expect("the deadline fires in time", took < _DEADLINE_S + _LATE_S, True)
            watched.expect("health of writing", await watched.is_well("store.writable"), False)
            await watched.lives()
            disk.heal()
            answers.set()
            watched.expect("the retry", await watched.appends("hung"), "1", "2")
            watched.expect("History", await watched.shows(), 2)
            await asyncio.sleep(3)  # a look of health that hung answers first
            watched.expect("health of writing, later", await watched.is_well("store.writable"), True)
    return watched


async def _reads_hang(folder: Path) -> _Watched:
    """A caller's deadline fires, and the sidecar's own where a caller has none; every History is true afterwards."""
    with faulty_disk() as disk:
        async with _watched(folder, disk.name) as watched:
            answers = threading.Event()
            disk.watcher = lambda operation, _: None if operation != "read" else _wait(answers)
            began = time.monotonic()
            watched.expect("History", await watched.told_in(_DEADLINE_S), "DEADLINE_EXCEEDED")
            watched.expect("the deadline fires in time", time.monotonic() - began < _DEADLINE_S + _LATE_S, True)
            watched.expect("History without a deadline", await watched.told_in(None), "DEADLINE_EXCEEDED")
            watched.expect("health of reading", await watched.is_well("store.readable"), False)
            await watched.lives()
            disk.heal()
            answers.set()
            watched.expect("History, later", await watched.shows(), 1)
    return watched


def _wait(answers: threading.Event) -> None:
    answers.wait(30)


async def _hangs_under_a_crowd(folder: Path) -> _Watched:
    """Callers that leave and come again while the disk hangs are shed once too many wait; no turn is there twice."""
    with faulty_disk() as disk:
        async with _watched(folder, disk.name) as watched:
            answers = threading.Event()
            disk.watcher = lambda operation, _: None if operation != "sync" else _wait(answers)
            shed = 0
            for _ in range(8):
                answered = await asyncio.gather(*(watched.appends(f"w{each}", timeout=1.0) for each in range(300)))
                shed += sum(isinstance(each, Refusal) and each.reason == "OVERLOADED" for each in answered)
                watched.expect("jobs that wait", watched.app._store.waiting()["writer"] <= _MOST_WAITING, True)
            watched.expect("some are shed", shed > 0, True)
            await watched.lives()
            disk.heal()
            answers.set()
            again = [await _until_answered(watched, f"w{each}") for each in range(300)]
            watched.expect("every retry is answered", set(again) - {"1", "2"}, set())
    watched.expect("each turn is there once", check_file(folder / "store.db", lambda _: None).rows, 301)
    return watched


async def _until_answered(watched: _Watched, work_key: str) -> str:
    """As a client does it: what is shed while the queue empties comes again."""
    for _ in range(100):
        answer = await watched.appends(work_key)
        if isinstance(answer, str):
            return answer
        await asyncio.sleep(0.1)
    return "never"


async def _started_read_only(folder: Path) -> _Watched | None:
    """On a volume that is mounted read-only calls are told so, and the store opens by itself once it is writable.

    None where nobody may mount: that is root's alone.
    """
    if os.geteuid() != 0:
        return None
    await run_command("mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder))
    try:
        async with _watched(folder):
            pass
        await run_command("mount", "-o", "remount,ro", str(folder))
        elsewhere = folder.with_name(f"{folder.name}-socket")
        await asyncio.to_thread(elsewhere.mkdir)
        chosen = settings(elsewhere, store=folder / "store.db")
        async with started(chosen, opened=False) as app, calling(app.address.target) as caller:
            watched = _Watched(app, caller)
            await asyncio.sleep(0.5)
            refusal = await watched.appends("protected")
            watched.expect("Append", getattr(refusal, "reason", refusal), "STORE_UNAVAILABLE", "STORE_IO")
            watched.expect("what it says", "read-only" in getattr(refusal, "message", "").lower(), True)
            watched.expect("History", await watched.shows(), "STORE_UNAVAILABLE", "STORE_IO")
            watched.expect("health of writing", await watched.is_well("store.writable"), False)
            await watched.lives()
            await run_command("mount", "-o", "remount,rw", str(folder))
            await asyncio.wait_for(app.opened(), PATIENCE_S)
            watched.expect("Append, later", await watched.appends("protected"), "1")
            watched.expect("History, later", await watched.shows(), 2)
    finally:
        await run_command("umount", str(folder))
    return watched


async def _read_only(folder: Path) -> _Watched:
    """Where the file system turns read-only, writes are refused and reads served; both go on once it is writable.

    Linux lets nobody remount what is open for writing: the disk refuses every write as SQLite reports EROFS.
    """
    with faulty_disk() as disk:
        async with _watched(folder, disk.name) as watched:
            await watched.app._store.finish_erasure()
            disk.watcher = _refuse_writes
            refusal = await watched.appends("protected")
            watched.expect("Append", getattr(refusal, "reason", refusal), "STORE_IO")
            watched.expect("History", await watched.shows(), 1)
            watched.expect("health of writing", await watched.is_well("store.writable"), False)
            watched.expect("health of reading", await watched.is_well("store.readable"), True)
            await watched.lives()
            disk.heal()
            watched.expect("Append, later", await watched.appends("protected"), "1")
            watched.expect("health of writing, later", await watched.is_well("store.writable"), True)
    return watched


def _refuse_writes(operation: str, _: str) -> None:
    if operation in {"write", "truncate", "sync"}:
        raise apsw.exception_for(apsw.SQLITE_IOERR_WRITE)


async def run_command(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE)
    _, said = await process.communicate()
    if process.returncode:
        raise OSError(f"{' '.join(command)}: {said.decode()}")


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """Each once: there is nothing random in it."""
    tries: dict[str, Callable[[Path], Awaitable[_Watched | None]]] = {
        "deleted": lambda place: _gone(place, os.unlink),
    }
    if not scale.quick:
        tries["replaced by a copy"] = lambda place: _gone(place, _replaced)
        tries["in a folder that is renamed"] = lambda place: _gone(place, _folder_renamed)
        tries["on a disk whose syncs hang"] = lambda place: _hangs(place, frozenset({"sync"}))
        tries["on a disk whose reads and writes hang"] = lambda place: _hangs(place, frozenset({"read", "write"}))
        tries["on a disk whose reads hang"] = _reads_hang
        tries["on a disk that hangs under a crowd"] = _hangs_under_a_crowd
        tries["on a file system that turns read-only"] = _read_only
        tries["on a file system that was mounted read-only"] = _started_read_only
    findings = []
    for number, (name, attempt) in enumerate(tries.items()):
        place = folder / str(number)
        place.mkdir()
        watched = await attempt(place)
        if watched is None:
            say(f"{name}: not tried, since a file system is mounted by root alone")
            continue
        findings.append(
            Finding(
                f"A file {name} is noticed: calls are refused by name, health says so, and rounds are composed",
                "Append, History, UserMessage and health asked, once more afterwards",
                watched.broken,
            )
        )
        say(name)
    return findings


EXPERIMENT: Final = Experiment("file", "the store's file taken away, replaced or hung while it is in use", run)
