"""The process is killed, again and again, with calls under way; what it had acknowledged is there."""

import asyncio
import itertools
import json
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
from turnledger.v1 import entry_pb2, record_pb2, render_pb2

from sidecar.cli.owner import NoOwner, ask
from sidecar.domain.errors import LedgerError
from sidecar.store.migrate import shipped
from tests.support import asking
from tests.support.running import Caller, Process, calling, process
from tests.torture.auditor import LONG, REWRITE, WITH_TWINS, Answer, Auditor, Figures, Unanswered
from tests.torture.experiment import Experiment, Finding, Say, Scale
from tests.torture.left import audit_backups, audit_store, prepare_store
from tests.torture.standing import EMPTY, Standing, Turn

_CALLERS: Final = 24

#: Stores whose processes are killed at the same time: one starts while the other is at work.
_LANES: Final = 2

#: Kills of one store, before the next one is begun: so that reading all of it each time stays short.
_KILLS_A_STORE: Final = 10

#: How long callers work before the kill; how long a start or an end is under way before it. In seconds.
_WORK_S: Final = (0.05, 0.4)
_START_S: Final = (0.0, 0.03)
_END_S: Final = (0.0, 0.05)

#: What is under way besides the calls when the kill comes.
_END: Final = "the end that a SIGTERM began"
_MEANWHILE: Final = ("calls alone", "a sweep", "a backup", _END)

#: Turns past retention in a store: a sweep takes about half a second for them.
_OLD_TURNS: Final = 1_000

#: Conversations whose History is read after a start, and turns that are sent again.
_HISTORIES: Final = 6
_AGAIN: Final = 10


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

    async def settle(self, turn: Turn) -> bool:
        request = asking.settle(turn.key.work_key, **_keys(turn))
        answer: record_pb2.SettleResponse = await _answered(self._caller.record.Settle(request))
        return answer.outcome in (record_pb2.SETTLE_OUTCOME_SETTLED, record_pb2.SETTLE_OUTCOME_ALREADY_REPLY)

    async def fit(self, turn: Turn) -> bool:
        fit = record_pb2.Fit(order_id=turn.order_id, original=LONG, rewrite=REWRITE)
        request = asking.fit(fits=[fit], **_keys(turn))
        answer: record_pb2.FitResponse = await _answered(self._caller.record.Fit(request))
        return answer.results[0].verdict == record_pb2.VERDICT_ACCEPTED

    async def history(self, turn: Turn) -> str:
        """The text of the block of the turn's conversation."""
        return (await self.block(turn)).text

    async def block(self, turn: Turn) -> render_pb2.History:
        """The block of the turn's conversation, and its counts."""
        answer: render_pb2.HistoryResponse = await _answered(self._caller.render.History(asking.history(**_keys(turn))))
        return answer.history

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
    """Over all stores. `in_flight` has the calls under way at each kill."""

    wanted: int
    begun: int = 0
    in_flight: list[int] = field(default_factory=list)
    starts: int = 0
    meanwhile: Counter[str] = field(default_factory=Counter)
    backups: int = 0
    audits: int = 0
    histories: int = 0
    figures: Figures = field(default_factory=Figures)

    def findings(self) -> Sequence[Finding]:
        figures = self.figures
        if idle := self.in_flight.count(0):
            figures.broken.append(f"{idle} kills met no call: they prove nothing")
        during = ", ".join(f"{count} during {what}" for what, count in sorted(self.meanwhile.items()))
        return [
            Finding(
                "What was acknowledged before a SIGKILL is there after it: once, verbatim, in order; other calls went"
                " through whole or not at all",
                f"{len(self.in_flight)} kills with {sum(self.in_flight)} calls in flight, {min(self.in_flight)} at"
                f" least ({during}), and {self.starts} in the middle of a start; {figures.effects} acknowledged;"
                f" {figures.went_through} of the Appends without an answer had gone through; {figures.redelivered}"
                f" turns sent again; {self.histories} Histories read; {self.audits} audits of all rows, with a check;"
                f" {self.backups} finished backups audited",
                figures.broken,
            )
        ]


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """Kill it 200 times, or a few."""
    tally = _Tally(wanted=4 if scale.quick else 200)
    lanes = (_lane(folder / str(lane), random.Random(f"{scale.seed}.{lane}"), tally, say) for lane in range(_LANES))
    await asyncio.gather(*lanes)
    return tally.findings()


async def _lane(folder: Path, chance: random.Random, tally: _Tally, say: Say) -> None:
    for number in itertools.count():
        if tally.begun >= tally.wanted:
            return
        place = folder / str(number)
        place.mkdir(parents=True)
        victim = _Victim(place, chance, tally)
        await victim.live()
        tally.figures.add(victim.auditor.figures)
        shutil.rmtree(place)
        say(f"{len(tally.in_flight)} of {tally.wanted} kills")


class _Victim:
    """One store, and the processes that own it one after the other."""

    def __init__(self, place: Path, chance: random.Random, tally: _Tally) -> None:
        self._store = place / "store.db"
        self._listen = f"unix://{place}/s"
        self._chance = chance
        self._tally = tally
        self._backups: dict[Path, Sequence[Turn]] = {}
        self.auditor = Auditor(_CALLERS, chance.randrange(2**32), WITH_TWINS)
        version = chance.choice(range(len(shipped()) + 1))
        prepare_store(self._store, version, _OLD_TURNS, int(time.time()), self.auditor)

    async def live(self) -> None:
        """Be killed and started again, until there were enough kills."""
        standing = EMPTY
        for number in range(_KILLS_A_STORE):
            if self._tally.begun >= self._tally.wanted or self.auditor.figures.broken:
                return
            self._tally.begun += 1
            if number % 3 == 0:
                standing = await self._kill_a_start(standing)
            async with process(self._listen, store=self._store) as sidecar:
                await sidecar.says("the store is open")
                async with calling(sidecar.target) as caller:
                    port = OverTheWire(caller)
                    await self._ask_again(port, standing)
                    await self._kill_at_work(sidecar, port)
            standing = await asyncio.to_thread(self._audit)

    async def _kill_a_start(self, standing: Standing) -> Standing:
        """In the middle of a migration, or of reading a log."""
        async with process(self._listen, store=self._store) as sidecar:
            await sidecar.says("listening on")
            await asyncio.sleep(self._chance.uniform(*_START_S))
            sidecar.send(signal.SIGKILL)
            await sidecar.ended()
        self._tally.starts += 1
        return await asyncio.to_thread(self._audit) if self.auditor.turns else standing

    async def _ask_again(self, port: OverTheWire, standing: Standing) -> None:
        """The process that was started answers as the rows say that it must."""
        for turns in list(self.auditor.conversations().values())[-_HISTORIES:]:
            self.auditor.figures.broken += _wrong(await port.block(turns[0]), standing.placed(turns))
            self._tally.histories += 1
        await self.auditor.redeliver(port, standing, samples=_AGAIN)

    async def _kill_at_work(self, sidecar: Process, port: OverTheWire) -> None:
        meanwhile = self._chance.choice(_MEANWHILE)
        driving = asyncio.ensure_future(self.auditor.drive(port))
        upkeep = asyncio.ensure_future(asyncio.to_thread(self._upkeep, meanwhile))
        await asyncio.sleep(self._chance.uniform(*_WORK_S))
        in_flight = self.auditor.flying
        if meanwhile == _END:
            sidecar.send(signal.SIGTERM)
            await asyncio.sleep(self._chance.uniform(*_END_S))
        sidecar.send(signal.SIGKILL)
        if await sidecar.ended() == -signal.SIGKILL:
            self._tally.in_flight.append(in_flight)
            self._tally.meanwhile[meanwhile] += 1
        else:  # it had ended before
            self._tally.begun -= 1
        await driving
        await upkeep

    def _upkeep(self, meanwhile: str) -> None:
        """The same command over and over, until nobody answers it."""
        with suppress(NoOwner, LedgerError):
            for number in itertools.count():
                if meanwhile == "a sweep":
                    self.auditor.sweeping = True
                    ask(self._store, "sweep", {"trust_clock": True}, lambda _: None)
                    self.auditor.swept = True
                elif meanwhile == "a backup":
                    to = self._store.with_name(f"backup-{self._tally.audits}-{number}.db")
                    self._backups[to] = self.auditor.acknowledged()
                    ask(self._store, "backup", {"to": str(to)}, lambda _: None)
                else:
                    return

    def _audit(self) -> Standing:
        self._tally.audits += 1
        self._tally.backups += audit_backups(self._backups, self.auditor)
        self._backups.clear()
        return audit_store(self._store, self.auditor)


def _wrong(history: render_pb2.History, placed: Sequence[tuple[Any, Turn]]) -> list[str]:
    """What is wrong with a conversation's block, by the rows that are there."""
    kept = [turn for row, turn in placed if not row.trimmed]
    counts = (history.shown + history.condensed + history.left_out, history.no_longer_kept, history.unreadable)
    if counts != (len(kept), len(placed) - len(kept), 0):
        return [f"a History counts {counts} of {len(kept)} kept entries and {len(placed) - len(kept)} trimmed ones"]
    quoted = ["| ".join(turn.text.splitlines(keepends=True)) for turn in kept[len(kept) - history.shown :]]
    places = [history.text.find(each) for each in quoted]
    whole_and_once = all(history.text.count(each) == 1 for each in quoted)
    return [] if whole_and_once and places == sorted(places) else ["a History shows a turn not once, whole, in order"]


EXPERIMENT: Final = Experiment("crash", "SIGKILL at random moments under load, during upkeep, starts and ends", run)
