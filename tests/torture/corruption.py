"""Files are damaged between two lives of the sidecar; what it answers afterwards is true, or an error."""

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import grpc.aio
from turnledger.v1 import render_pb2

from sidecar.app.app import App
from sidecar.domain.errors import LedgerError
from sidecar.store.files import check_file
from tests.support import asking
from tests.support.patience import PATIENCE_S
from tests.support.refusal import read_refusal
from tests.support.running import Caller, calling, settings, started
from tests.torture.damages import ALWAYS_THE_SAME, DAMAGES, LOG_DAMAGES
from tests.torture.experiment import Experiment, Finding, Say, Scale

T = TypeVar("T")

#: The last one begins only after the file's earlier state was kept.
_CONVERSATIONS: Final = ("alpha", "beta", "late")
_TURNS: Final = 8
_MOVED: Final = 4

#: What damage may be told as. Anything else, INTERNAL above all, is a fault of ours.
_TOLD: Final = frozenset({"STORE_CORRUPT", "STORE_IO", "STORE_UNAVAILABLE", "STORE_NEWER"})

_PROMISES: Final = {
    False: "no bug, no foreign text, no false emptiness, and a turn that is missing is told of or found by `check`",
    True: "no bug, no foreign text, and no turn lost that had been moved into the file",
}


@dataclass(slots=True)
class _Seen:
    """What was answered: Histories by kind, turns that no History told of, and what should not have been."""

    answers: Counter[str] = field(default_factory=Counter)
    unsaid: int = 0
    broken: list[str] = field(default_factory=list)


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """Each damage many times, at random places."""
    chance = random.Random(scale.seed)
    sound = folder / "sound"
    sound.mkdir()
    await _filled(sound)
    findings = []
    for name, damage in (DAMAGES | LOG_DAMAGES).items():
        runs = 1 if scale.quick or name in ALWAYS_THE_SAME else 150
        seen = _Seen()
        for number in range(runs):
            place = folder / f"{name} {number}".replace(" ", "-")
            await asyncio.to_thread(shutil.copytree, sound, place)
            await asyncio.to_thread(damage, place / "store.db", chance)
            finds_it = await asyncio.to_thread(_check_finds_it, place / "store.db")
            unsaid = await _ask(place, seen, moved_only=name in LOG_DAMAGES)
            if unsaid and not finds_it:
                seen.broken.append(f"{unsaid} turns were left out, and nothing says so")
            seen.unsaid += unsaid
            await asyncio.to_thread(shutil.rmtree, place)
        answers = ", ".join(f"{count} {answer}" for answer, count in sorted(seen.answers.items()))
        findings.append(
            Finding(
                f"Damage to {name}: {_PROMISES[name in LOG_DAMAGES]}",
                f"{runs} runs; Histories: {answers}; {seen.unsaid} turns that only `check` tells of",
                seen.broken,
            )
        )
        say(f"{name}: {answers}; {len(seen.broken)} broken")
    return findings


async def _filled(folder: Path) -> None:
    """A store with turns in three conversations, closed.

    Beside it the file as it was before the last of them began, and the files with their log, as a kill leaves them.
    """
    async with started(settings(folder)) as app, calling(app.address.target) as caller:
        for number in range(_MOVED):
            await _append(caller, number, *_CONVERSATIONS[:-1])
        await app._store.finish_erasure()  # so many of each are in the file, the others in the log
        await _copied(folder, "earlier", "")
        for number in range(_TURNS):
            await _append(caller, number, *(_CONVERSATIONS if number >= _MOVED else _CONVERSATIONS[-1:]))
        await _copied(folder, "log", "", "-wal")


async def _append(caller: Caller, number: int, *conversations: str) -> None:
    for name in conversations:
        entry = asking.entry(reply=_said(name, number))
        await caller.record.Append(asking.append(f"w{number}", conversation_key=name, entry=entry))


def _said(conversation: str, number: int) -> str:
    return f"said in {conversation}, turn {number}. " * 20 + "(end)"


async def _copied(folder: Path, name: str, *suffixes: str) -> None:
    """By another process: to close a live store's file here would drop its locks."""
    (folder / name).mkdir()
    for suffix in suffixes:
        copying = await asyncio.create_subprocess_exec("cp", str(folder / f"store.db{suffix}"), str(folder / name))
        assert await copying.wait() == 0


def _check_finds_it(store: Path) -> bool:
    try:
        return not check_file(store, lambda _: None).sound
    except LedgerError:
        return True


async def _ask(place: Path, seen: _Seen, *, moved_only: bool) -> int:
    """Ask for everything. Answers how many turns were left out though no answer says so."""
    async with started(settings(place), opened=False) as app, calling(app.address.target) as caller:
        await asyncio.wait({asyncio.ensure_future(app.opened())}, timeout=0.3)
        unsaid = 0
        for name in _CONVERSATIONS:
            at_least = _TURNS if not moved_only else 0 if name == _CONVERSATIONS[-1] else _MOVED
            unsaid += await _history(caller, name, at_least, seen)
        for name in _CONVERSATIONS:
            keys = {"conversation_key": name}
            await _told(seen, caller.record.Append(asking.append("new", **keys), timeout=PATIENCE_S))
            await _told(seen, caller.record.Settle(asking.settle("w1", **keys), timeout=PATIENCE_S))
            await _told(seen, caller.record.Forget(asking.forget_turn("w2", conversation=name), timeout=PATIENCE_S))
            await _history(caller, name, 0, seen)
        await _told(seen, caller.render.UserMessage(asking.user_message(), timeout=PATIENCE_S))
        await _maintain(app, place, seen)
    return unsaid


async def _maintain(app: App, place: Path, seen: _Seen) -> None:
    """What maintenance and commands do, on the damaged store."""
    store = app._store
    await _told(seen, store.totals())
    await _told(seen, store.check(lambda _: None))
    await _told(seen, store.backup(place / "backup.db", lambda _: None))
    await _told(seen, store.sweep(1, 5))
    await _told(seen, store.forget_seat(asking.SEAT))


async def _history(caller: Caller, name: str, at_least: int, seen: _Seen) -> int:
    """Judge one History. Answers how many of so many turns it does not account for."""
    request = asking.history(conversation_key=name)
    answer: render_pb2.HistoryResponse | None = await _told(seen, caller.render.History(request, timeout=PATIENCE_S))
    if answer is None:
        seen.answers["errors"] += bool(at_least)
        return 0
    history = answer.history
    if at_least and history.state == render_pb2.HISTORY_STATE_EMPTY:
        seen.broken.append("a conversation with turns was passed off as empty")
    if any(f"said in {other}," in history.text for other in _CONVERSATIONS if other != name):
        seen.broken.append("another conversation's text was shown")
    whole = sum(_said(name, number) in history.text for number in range(_TURNS))
    if history.text.count(f"said in {name}, turn ") != 20 * whole:
        seen.broken.append("a turn was shown otherwise than it was sent, or twice")
    told = history.shown + history.condensed + history.left_out + history.unreadable + history.no_longer_kept
    if at_least:
        seen.answers[f"with {history.unreadable} unreadable" if history.unreadable else f"of {told}"] += 1
    return max(at_least - told, 0)


async def _told(seen: _Seen, call: Awaitable[T]) -> T | None:
    """The answer, or None for a refusal that damage may lead to."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        refusal = read_refusal(error)
        if refusal.reason not in _TOLD:
            seen.broken.append(f"told as {refusal.code.name} {refusal.reason}")
    except LedgerError as error:
        if error.code.value not in _TOLD:
            seen.broken.append(f"a command was told {error.code.value}")
    except Exception as bug:  # noqa: BLE001  whatever it is, it is a finding
        seen.broken.append(f"a command met a bug: {type(bug).__name__}: {bug}")
    return None


EXPERIMENT: Final = Experiment("corruption", "damage to every part of the files", run)
