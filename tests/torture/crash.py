"""The process is killed, again and again, with calls under way; what it had acknowledged is there."""

import asyncio
import itertools
import json
import random
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
from turnledger.v1 import entry_pb2, record_pb2, render_pb2

from sidecar.cli.owner import NoOwner, ask
from sidecar.domain.errors import LedgerError
from sidecar.store.files import check_file
from tests.support import asking
from tests.support.running import Caller, calling, process
from tests.torture.auditor import LONG, REWRITE, Answer, Auditor, Standing, Turn, Unanswered, read_standing
from tests.torture.experiment import Experiment, Finding, Say, Scale

_CALLERS: Final = 24

#: Kills of one store, before the next one is begun: so that reading all of it each time stays short.
_KILLS_A_STORE: Final = 20

#: How long callers work before the kill, in seconds, and how long a start may take before one that kills it.
_WORK_S: Final = (0.05, 0.4)
_START_S: Final = (0.05, 0.9)


class OverTheWire:
    """The ledger by gRPC."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def append(self, turn: Turn) -> Answer:
        arguments = json.dumps({"note": LONG, "to": "gate"})
        call = entry_pb2.ToolCall(name="log", arguments=arguments, kind=entry_pb2.CALL_KIND_WRITE)
        request = asking.append(turn.key.work_key, entry=asking.entry(unsent=turn.text, calls=[call]), **_keys(turn))
        answer: record_pb2.AppendResponse = await _answered(self._caller.record.Append(request))
        orders = [order.order_id for order in answer.orders if order.kind == entry_pb2.ORDER_KIND_ARGUMENT]
        skipped = answer.skip_reason == record_pb2.SKIP_REASON_FORGOTTEN
        disposition = "forgotten" if skipped else record_pb2.Disposition.Name(answer.disposition)[12:].lower()
        return Answer(disposition, answer.entry_id, orders[0] if orders else "")

    async def settle(self, turn: Turn) -> None:
        await _answered(self._caller.record.Settle(asking.settle(turn.key.work_key, **_keys(turn))))

    async def fit(self, turn: Turn) -> None:
        fit = record_pb2.Fit(order_id=turn.order_id, original=LONG, rewrite=REWRITE)
        await _answered(self._caller.record.Fit(asking.fit(fits=[fit], **_keys(turn))))

    async def history(self, turn: Turn) -> str:
        """The block of the turn's conversation."""
        answer: render_pb2.HistoryResponse = await _answered(self._caller.render.History(asking.history(**_keys(turn))))
        return answer.history.text

    async def forget(self, turn: Turn) -> None:
        conversation = turn.key.conversation
        scope = asking.forget_turn(turn.key.work_key, conversation.agent_handle, conversation.conversation_key)
        await _answered(self._caller.record.Forget(scope))


def _keys(turn: Turn) -> dict[str, str]:
    conversation = turn.key.conversation
    return {"agent_handle": conversation.agent_handle, "conversation_key": conversation.conversation_key}


async def _answered(call: Any) -> Any:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise Unanswered from error


@dataclass(slots=True)
class _Tally:
    kills: int = 0
    in_flight: int = 0
    starts_killed: int = 0
    with_upkeep: int = 0
    backups: int = 0
    checks: int = 0
    shown: int = 0


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """Kill it 200 times, or a few."""
    kills = 3 if scale.quick else 200
    chance = random.Random(scale.seed)
    tally, auditors = _Tally(), []
    while tally.kills < kills:
        auditor = Auditor(_CALLERS, chance.randrange(2**32))
        auditors.append(auditor)
        place = folder / str(len(auditors))
        place.mkdir()
        await _one_store(place, auditor, chance, min(_KILLS_A_STORE, kills - tally.kills), tally)
        shutil.rmtree(place)
        say(f"{tally.kills} of {kills} kills")
    broken = [way for auditor in auditors for way in auditor.figures.broken]
    done = sum((auditor.figures.acknowledged for auditor in auditors[1:]), auditors[0].figures.acknowledged)
    went = sum(auditor.figures.went_through for auditor in auditors)
    again = sum(auditor.figures.redelivered for auditor in auditors)
    effects = ", ".join(f"{count} {work}s" for work, count in sorted(done.items()))
    return [
        Finding(
            "What was acknowledged before a SIGKILL is there after it: once, verbatim, in order; other calls went"
            " through whole or not at all",
            f"{tally.kills} kills with {tally.in_flight} calls in flight ({tally.with_upkeep} during a sweep or backup)"
            f" and {tally.starts_killed} more of a start; {effects} acknowledged; {went} Appends without an answer had"
            f" gone through; {again} turns redelivered; {tally.shown} Histories read; {tally.checks} checks;"
            f" {tally.backups} finished backups",
            broken,
        )
    ]


async def _one_store(place: Path, auditor: Auditor, chance: random.Random, kills: int, tally: _Tally) -> None:
    store, listen = place / "store.db", f"unix://{place}/s"
    standing = Standing({}, frozenset())
    for number in range(kills):
        if number % 5 == 2:
            await _kill_a_start(store, listen, chance)
            tally.starts_killed += 1
        async with process(listen, store=store) as sidecar:
            await sidecar.says("the store is open")
            async with calling(sidecar.target) as caller:
                port = OverTheWire(caller)
                await auditor.redeliver(port, standing, samples=5)
                tally.shown += await _shows(caller, auditor)
                driving = asyncio.ensure_future(auditor.drive(port))
                upkeep = asyncio.ensure_future(_upkeep(place, chance, number))
                await asyncio.sleep(chance.uniform(*_WORK_S))
                tally.in_flight += auditor.flying
                tally.kills += 1
                tally.with_upkeep += not upkeep.done()
                sidecar.send(signal.SIGKILL)
                await sidecar.ended()
                await driving
                await upkeep
        standing = await asyncio.to_thread(_look, place, auditor, tally)


async def _kill_a_start(store: Path, listen: str, chance: random.Random) -> None:
    """So that a migration, or the reading of a log, is cut off too."""
    async with process(listen, store=store) as sidecar:
        await asyncio.sleep(chance.uniform(*_START_S))
        sidecar.send(signal.SIGKILL)
        await sidecar.ended()


async def _upkeep(place: Path, chance: random.Random, number: int) -> None:
    """Every other time a sweep or a backup is at work when the kill comes."""
    if number % 2:
        return
    command = chance.choice(["sweep", "backup"])

    def again_and_again() -> None:
        with suppress(NoOwner, LedgerError, OSError):  # until it is killed
            for each in itertools.count():
                to = {"to": str(place / f"backup-{number}-{each}.db")} if command == "backup" else {}
                ask(place / "store.db", command, to, lambda _: None)

    await asyncio.to_thread(again_and_again)


async def _shows(caller: Caller, auditor: Auditor) -> int:
    """History shows the newest acknowledged turn of a few conversations, word for word."""
    shown = 0
    newest = {turn.key.conversation: turn for turn in auditor.turns if turn.entry_id and not turn.forgotten}
    for turn in list(newest.values())[:8]:
        answer = await caller.render.History(asking.history(**_keys(turn)))
        quoted = "| ".join(turn.text.splitlines(keepends=True))
        if quoted in answer.history.text:
            shown += 1
        else:
            auditor.figures.broken.append("a History lacks the newest acknowledged turn")
    return shown


def _look(place: Path, auditor: Auditor, tally: _Tally) -> Standing:
    """At a copy of the killed process's files, as it left them; and at each backup that has its name."""
    copy = place / "copy"
    copy.mkdir(exist_ok=True)
    for suffix in ("", "-wal"):
        left = place / f"store.db{suffix}"
        (copy / left.name).unlink(missing_ok=True)
        if left.exists():
            shutil.copy(left, copy / left.name)
    for file in (copy / "store.db", *place.glob("backup-*.db")):
        found = check_file(file, lambda _: None)
        tally.checks += 1
        if not found.sound:
            auditor.figures.broken.append(f"check of {file.name}: {found}")
    tally.backups += len(list(place.glob("backup-*.db")))
    for backup in place.glob("backup-*.db"):
        backup.unlink()
    standing = read_standing(copy / "store.db", auditor.turns)
    auditor.audit(standing)
    return standing


EXPERIMENT: Final = Experiment("crash", "SIGKILL at random moments under load, during upkeep and starts", run)
