"""Every call that the store makes to its disk fails in turn, once or until it is mended, under the running server."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc.aio

from sidecar.app.app import App
from sidecar.domain.eligibility import Conversation, TurnKey
from sidecar.domain.errors import LedgerError
from sidecar.store.files import check_file
from tests.support import asking
from tests.support.faulty_disk import FaultyDisk, faulty_disk
from tests.support.patience import PATIENCE_S
from tests.support.refusal import read_refusal
from tests.support.running import Caller, calling, settings, started
from tests.torture.auditor import REWRITE, Answer, Unanswered
from tests.torture.crash import OverTheWire
from tests.torture.experiment import Experiment, Finding, Say, Scale
from tests.torture.standing import Turn, read_standing
from tests.torture.trouble import KINDS, Kind, Trouble, counting

#: No trouble with writes is a reason for History to be refused.
_READS_ARE_SERVED: Final = Kind("a read, though reads are well,", frozenset(), lambda: None, ("", ""))


@dataclass(slots=True)
class _Case:
    """One run of the script: what was acknowledged, what was refused and how."""

    statuses: Counter[tuple[str, str]] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    forgetting: bool = False


class _Script:
    """Every operation there is, in order; what fails is tried again in a second round, once the disk is well."""

    def __init__(self, app: App, port: OverTheWire) -> None:
        self._app, self._port = app, port
        self.case = _Case()
        here = Conversation("scout", "jira:POC-7")
        self.case.turns = [Turn(TurnKey(here, f"w{number}"), f"text {number} " * 60) for number in range(8)]

    async def play(self, kind: Kind | None) -> None:
        """Each step is carried out, or refused with the kind's own row of the table."""
        turns = self.case.turns
        await self._step(kind, self._append(turns[0]))
        await asyncio.gather(*(self._step(kind, self._append(turn)) for turn in turns[1:7]))
        await self._step(kind if kind is None or "read" in kind.operations else _READS_ARE_SERVED, self._history())
        await self._step(kind, self._settle())
        await self._step(kind, self._fit())
        await self._step(kind, self._forget())
        await self._step(kind, self._sweep())
        await self._step(kind, self._append(turns[7]))
        await self._step(kind if kind is None or "read" in kind.operations else _READS_ARE_SERVED, self._history())

    async def _step(self, kind: Kind | None, step: Awaitable[None]) -> None:
        try:
            await step
        except Unanswered as failure:
            error = failure.__cause__
            assert isinstance(error, grpc.aio.AioRpcError)
            self._refused(kind, (error.code().name, read_refusal(error).reason))
        except LedgerError as error:
            self._refused(kind, ("", error.code.value))

    def _refused(self, kind: Kind | None, status: tuple[str, str]) -> None:
        self.case.statuses[status] += 1
        if kind is None:
            self.case.broken.append(f"refused with {status} though the disk is well again")
        elif status not in (kind.told, ("", kind.told[1])):
            self.case.broken.append(f"{kind.name} was told as {status}")

    async def _append(self, turn: Turn) -> None:
        answer: Answer = await self._port.append(turn)
        if answer.disposition == "forgotten" and self.case.forgetting:
            turn.entry_id = ""  # the Forget that was refused had gone through
        elif turn.entry_id and (answer.disposition, answer.entry_id) != ("duplicate", turn.entry_id):
            self.case.broken.append(f"a turn that was acknowledged is now {answer.disposition}")
        turn.entry_id, turn.order_id = answer.entry_id, answer.order_id

    async def _settle(self) -> None:
        if self.case.turns[1].entry_id:
            await self._port.settle(self.case.turns[1])

    async def _fit(self) -> None:
        if self.case.turns[2].order_id:
            await self._port.fit(self.case.turns[2])

    async def _forget(self) -> None:
        if self.case.turns[3].entry_id:
            self.case.forgetting = True
            await self._port.forget(self.case.turns[3])
            self.case.turns[3].entry_id = ""

    async def _sweep(self) -> None:
        await self._app._store.sweep(1, 20)

    async def _history(self) -> None:
        block = await self._port.history(self.case.turns[0])
        for turn in self.case.turns:
            times = block.count(turn.text.strip())
            if times > 1 or (turn.entry_id and not times):
                self.case.broken.append(f"History shows {times} times what was acknowledged")

    async def still_composes(self, caller: Caller) -> None:
        """Whatever the disk does, the process lives and composes."""
        answer = await caller.render.UserMessage(asking.user_message(), timeout=PATIENCE_S)
        if "Answer the question." not in answer.text:
            self.case.broken.append("UserMessage was not composed")


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """For each kind: once at each operation, and lasting from each on."""
    chance = random.Random(scale.seed)
    counted = await _counted(folder / "counted")
    findings = []
    for kind in KINDS:
        count = sum(number for operation, number in counted.items() if operation in kind.operations)
        if not count:
            continue  # a lock is taken when the store is opened (`opening.py`)
        places = [(first, lasting) for first in range(count) for lasting in (False, True)]
        if scale.quick:
            places = chance.sample(places, min(2, len(places)))
        elif kind.name == "slow":
            places = [(0, True)]  # all of them slow
        findings.append(await _tried(folder / kind.name.replace(" ", "-"), kind, places))
        say(f"{kind.name}: {len(places)} runs")
    return findings


async def _counted(folder: Path) -> Counter[str]:
    """How many operations of each sort the script takes, on a disk that is well."""
    counts: list[Counter[str]] = []
    case = await _played(folder, None, lambda disk: counts.append(counting(disk)))
    assert not case.broken, case.broken
    return counts[0]


async def _tried(folder: Path, kind: Kind, places: Sequence[tuple[int, bool]]) -> Finding:
    met = refusals = 0
    broken: list[str] = []
    for first, lasting in places:
        troubles: list[Trouble] = []

        def begin(disk: FaultyDisk, first: int = first, lasting: bool = lasting, made: Any = troubles) -> None:
            made.append(Trouble(disk, kind, first, lasting=lasting))

        case = await _played(folder / f"{first}-{lasting}", kind, begin)
        met += troubles[0].met > 0
        refusals += case.statuses.total()
        broken += [f"{way} (at {first}, {'lasting' if lasting else 'once'})" for way in case.broken]
    told = f"told as {' '.join(kind.told)}" if kind.told[1] else "no call refused"
    return Finding(
        f"{kind.name.capitalize()}: costs the calls that meet it and no more; all go through once the disk is well",
        f"{len(places)} runs, at each such operation once and lasting from it on; {met} met it; {refusals} calls"
        f" refused, {told}",
        broken,
    )


async def _played(folder: Path, kind: Kind | None, begin: Callable[[FaultyDisk], None]) -> _Case:
    """The script on a disk in trouble, and again once it is well; then what stands is held to what was acknowledged."""
    await asyncio.to_thread(folder.mkdir, parents=True)
    with faulty_disk() as disk:
        async with started(settings(folder), vfs=disk.name) as app, calling(app.address.target) as caller:
            port = OverTheWire(caller)
            await app._store.finish_erasure()  # what the opening began is over
            script = _Script(app, port)
            begin(disk)
            await script.play(kind)
            await script.still_composes(caller)
            disk.heal()
            await script.play(None)
    case = script.case
    _audit(folder / "store.db", case)
    return case


def _audit(path: Path, case: _Case) -> None:
    found = check_file(path, lambda _: None)
    standing = read_standing(path, case.turns)
    if not found.sound:
        case.broken.append(f"the check found {found}")
    for turn in case.turns:
        rows = standing.rows.get(turn.key, ())
        texts = [row.entry.final_text for row in rows if row.entry is not None]
        expected = [] if turn.key in standing.forgotten else [turn.text]
        if texts != expected:
            case.broken.append(f"a turn stands {len(texts)} times, or not as it was sent")
    settled, fitted = (standing.rows[turn.key][0].entry for turn in case.turns[1:3])
    if settled is None or not settled.delivered:
        case.broken.append("what was settled stands as unsent")
    if REWRITE not in repr(fitted):
        case.broken.append("a rewrite that was accepted does not stand")


EXPERIMENT: Final = Experiment("faults", "each operation of the disk fails in turn, under the running server", run)
