"""Files are damaged between two lives of the sidecar; what it answers afterwards is true, or an error."""

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import apsw
import grpc.aio
from turnledger.v1 import render_pb2

from sidecar.store.files import check_file
from tests.support import asking
from tests.support.patience import PATIENCE_S
from tests.support.refusal import read_refusal
from tests.support.running import Caller, calling, settings, started
from tests.torture.experiment import Experiment, Finding, Say, Scale

_CONVERSATIONS: Final = ("alpha", "beta", "gamma")
_TURNS: Final = 8
_MOVED: Final = 4

#: What damage may be told as. Anything else, INTERNAL above all, is a fault of ours.
_TOLD: Final = frozenset({"STORE_CORRUPT", "STORE_IO", "STORE_UNAVAILABLE", "STORE_NEWER"})

#: Damages a store's files.
Damage = Callable[[Path, random.Random], None]


def _header(store: Path, chance: random.Random) -> None:
    _overwrite(store, chance.randrange(100), chance.randbytes(chance.randint(1, 16)))


def _some_bytes(store: Path, chance: random.Random) -> None:
    size = store.stat().st_size
    for _ in range(chance.randint(1, 40)):
        _overwrite(store, chance.randrange(100, size), chance.randbytes(chance.randint(1, 64)))


def _a_page(store: Path, chance: random.Random) -> None:
    page = chance.randrange(store.stat().st_size // 4096)
    _overwrite(store, page * 4096, chance.choice([bytes(4096), chance.randbytes(4096)]))


def _cut(store: Path, chance: random.Random) -> None:
    with store.open("r+b") as file:
        file.truncate(chance.randrange(1, store.stat().st_size))


def _zeros(store: Path, _: random.Random) -> None:
    store.write_bytes(bytes(store.stat().st_size))


def _emptied(store: Path, _: random.Random) -> None:
    store.write_bytes(b"")


def _log_bytes(store: Path, chance: random.Random) -> None:
    log = _with_log(store)
    for _ in range(chance.randint(1, 10)):
        _overwrite(log, chance.randrange(log.stat().st_size), chance.randbytes(chance.randint(1, 64)))


def _log_cut(store: Path, chance: random.Random) -> None:
    log = _with_log(store)
    with log.open("r+b") as file:
        file.truncate(chance.randrange(log.stat().st_size))


def _row_bytes(store: Path, chance: random.Random) -> None:
    _by_sql(
        store,
        "UPDATE conversation_sessions SET entry = CAST(substr(entry, 1, ?) || x'ff' || substr(entry, ? + 2) AS BLOB)"
        " WHERE id = ?",
        (place := chance.randrange(200), place, chance.randint(1, _TURNS * 3)),
    )


def _rows_swapped(store: Path, chance: random.Random) -> None:
    """Entry and seal of one conversation's row stand in another's; or the row itself does."""
    if chance.random() < 0.5:
        _by_sql(
            store,
            "UPDATE conversation_sessions SET (entry, checksum, entry_id, version) ="
            " (SELECT entry, checksum, entry_id, version FROM conversation_sessions WHERE id = ?) WHERE id = ?",
            (chance.randint(1, _TURNS), chance.randint(_TURNS + 1, _TURNS * 3)),
        )
    else:
        _by_sql(
            store,
            "UPDATE conversation_sessions SET conversation_key = ?, work_key = 'moved', ordinal = 99 WHERE id = ?",
            (chance.choice(_CONVERSATIONS), chance.randint(1, _TURNS * 3)),
        )


def _ledger(store: Path, chance: random.Random) -> None:
    change = chance.choice(
        [
            "UPDATE schema_migrations SET checksum = 'x'",
            "DELETE FROM schema_migrations WHERE number = 1",
            "UPDATE schema_migrations SET number = number + 100",
            "DROP TABLE schema_migrations",
        ]
    )
    _by_sql(store, change, ())


_DAMAGES: Final[dict[str, Damage]] = {
    "the header": _header,
    "random bytes": _some_bytes,
    "a page": _a_page,
    "a file cut short": _cut,
    "a file of zeros": _zeros,
    "an emptied file": _emptied,
    "a row's bytes": _row_bytes,
    "a row in another conversation's place": _rows_swapped,
    "the ledger of migrations": _ledger,
}

#: To SQLite these look like a power loss: the log counts up to there.
_LOG_DAMAGES: Final[dict[str, Damage]] = {"bytes of the log": _log_bytes, "a log cut short": _log_cut}


_PROMISES: Final = {
    False: "no bug, no foreign text, no false emptiness, and a turn that is missing is told of or found by `check`",
    True: "no bug, no foreign text, and no turn lost that had been moved into the file",
}


@dataclass(slots=True)
class _Seen:
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
    for name, damage in (_DAMAGES | _LOG_DAMAGES).items():
        runs = 1 if scale.quick or damage in (_zeros, _emptied) else 100
        seen = _Seen()
        for number in range(runs):
            place = folder / f"{name} {number}".replace(" ", "-")
            await asyncio.to_thread(shutil.copytree, sound, place)
            await asyncio.to_thread(damage, place / "store.db", chance)
            unsaid = await _ask(place, seen, _MOVED if name in _LOG_DAMAGES else _TURNS)
            if unsaid and check_file(place / "store.db", lambda _: None).sound:
                seen.broken.append(f"{unsaid} turns were left out, and nothing says so")
            seen.unsaid += unsaid
            await asyncio.to_thread(shutil.rmtree, place)
        answers = ", ".join(f"{count} {answer}" for answer, count in sorted(seen.answers.items()))
        findings.append(
            Finding(
                f"Damage to {name}: {_PROMISES[name in _LOG_DAMAGES]}",
                f"{runs} runs; Histories: {answers}; {seen.unsaid} turns that only `check` tells of",
                seen.broken,
            )
        )
        say(f"{name}: {answers}")
    return findings


async def _filled(folder: Path) -> None:
    """A store with turns in three conversations, closed; and beside it one with its log, as a kill leaves it."""
    async with started(settings(folder)) as app, calling(app.address.target) as caller:
        for number in range(_TURNS):
            for name in _CONVERSATIONS:
                entry = asking.entry(reply=f"said in {name}, turn {number}. " * 20)
                await caller.record.Append(asking.append(f"w{number}", conversation_key=name, entry=entry))
            if number == _MOVED - 1:
                await app._store.finish_erasure()  # so many of each are in the file, the others in the log
        (folder / "log").mkdir()
        for suffix in ("", "-wal"):  # by another process: to close a live store's file here would drop its locks
            left = str(folder / f"store.db{suffix}")
            await (await asyncio.create_subprocess_exec("cp", left, str(folder / "log"))).wait()


async def _ask(place: Path, seen: _Seen, at_least: int) -> int:
    """Ask for everything. Answers how many turns were left out though no answer says so."""
    async with started(settings(place), opened=False) as app, calling(app.address.target) as caller:
        await asyncio.wait({asyncio.ensure_future(app.opened())}, timeout=0.3)
        unsaid = 0
        for name in _CONVERSATIONS:
            unsaid += await _history(caller, name, at_least, seen)
        await _told(seen, caller.record.Append(asking.append("new"), timeout=PATIENCE_S))
        await _told(seen, caller.record.Settle(asking.settle("w1", conversation_key="alpha"), timeout=PATIENCE_S))
        await _told(seen, caller.render.UserMessage(asking.user_message(), timeout=PATIENCE_S))
    return unsaid


async def _history(caller: Caller, name: str, at_least: int, seen: _Seen) -> int:
    request = asking.history(conversation_key=name)
    answer: render_pb2.HistoryResponse | None = await _told(seen, caller.render.History(request, timeout=PATIENCE_S))
    if answer is None:
        seen.answers["errors"] += 1
        return 0
    history = answer.history
    if history.state == render_pb2.HISTORY_STATE_EMPTY:
        seen.broken.append("a conversation with turns was passed off as empty")
    if any(f"said in {other}," in history.text for other in _CONVERSATIONS if other != name):
        seen.broken.append("another conversation's text was shown")
    told = history.shown + history.condensed + history.left_out + history.unreadable + history.no_longer_kept
    seen.answers[f"with {history.unreadable} unreadable" if history.unreadable else f"of {told}"] += 1
    return max(at_least - told, 0)


async def _told(seen: _Seen, call: Any) -> Any:
    """The answer, or None for a refusal that damage may lead to."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        refusal = read_refusal(error)
        if refusal.reason not in _TOLD:
            seen.broken.append(f"told as {refusal.code.name} {refusal.reason}")
        return None


def _overwrite(file: Path, place: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(data)


def _with_log(store: Path) -> Path:
    """Put the files as a kill leaves them in the place of the closed store."""
    for suffix in ("", "-wal"):
        shutil.copy(store.parent / "log" / f"store.db{suffix}", store.parent)
    return store.with_name("store.db-wal")


def _by_sql(store: Path, change: str, values: tuple[object, ...]) -> None:
    db = apsw.Connection(str(store))
    try:
        db.execute(change, values)
    finally:
        db.close()


EXPERIMENT: Final = Experiment("corruption", "damage to every part of the files", run)
