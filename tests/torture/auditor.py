"""An auditor: drives a ledger with many callers, remembers what was acknowledged, and holds the store's rows to it."""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import apsw

from sidecar.domain.eligibility import Conversation, TurnKey
from sidecar.domain.entry import Entry
from sidecar.domain.payload import PayloadState
from sidecar.store.forgotten import is_forgotten
from sidecar.store.row import Row

#: Over budget, so that an order is issued for it; and a rewrite of it that is good.
LONG: Final = "the valve at the north gate was opened a little and closed again " * 5
REWRITE: Final = "the valve was opened and closed"

#: Work keys that begin so are nobody's whom the auditor knows.
RUDE: Final = ("rude-", "crowd")

#: What callers do, and how often.
WORKS: Final[Mapping[str, int]] = {"append": 70, "settle": 12, "fit": 12, "forget": 6}

#: Turns of one conversation: as many as are kept, so that none is trimmed.
_TURNS: Final = 20


class Unanswered(Exception):
    """The call ended without an answer: what it asked for may be or may not be."""


@dataclass(slots=True, eq=False)
class Turn:
    """One turn and what was acknowledged of it. `entry_id` is empty until its Append was answered."""

    key: TurnKey
    text: str
    entry_id: str = ""
    order_id: str = ""
    settled: bool = False
    fitted: bool = False
    forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What an Append answered: `recorded`, `duplicate` or `forgotten`."""

    disposition: str
    entry_id: str
    order_id: str = ""


class Port(Protocol):
    """The ledger as the auditor reaches it. Every method raises `Unanswered`."""

    async def append(self, turn: Turn) -> Answer: ...

    async def settle(self, turn: Turn) -> None: ...

    async def fit(self, turn: Turn) -> None: ...

    async def forget(self, turn: Turn) -> None: ...


@dataclass(frozen=True, slots=True)
class Kept:
    """A row as it stands."""

    row_id: int
    ordinal: int
    entry_id: str
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands in a store: rows by their keys, and which of the asked turns it knows as forgotten."""

    rows: Mapping[TurnKey, Sequence[Kept]]
    forgotten: frozenset[TurnKey]


def read_standing(path: Path, turns: Sequence[Turn]) -> Standing:
    """Read all rows of a store that nobody owns, past the product's own reading."""
    db = apsw.Connection(str(path))
    rows: dict[TurnKey, list[Kept]] = {}
    try:
        found: list[Any] = db.execute(
            "SELECT id, agent_handle, conversation_key, work_key, entry_id, version, entry, checksum, ordinal"
            " FROM conversation_sessions ORDER BY id"
        ).fetchall()
        forgotten = frozenset(turn.key for turn in turns if is_forgotten(db, turn.key))
    finally:
        db.close()
    for row_id, seat, conversation, work_key, entry_id, version, data, checksum, ordinal in found:
        key = TurnKey(Conversation(seat, conversation), work_key)
        row = Row(key.conversation, row_id, work_key.encode(), entry_id.encode(), version, data, checksum)
        recorded = row.recorded()
        kept = Kept(row_id, ordinal, entry_id, None if recorded is None else recorded.entry)
        rows.setdefault(key, []).append(kept)
    return Standing(rows, forgotten)


@dataclass(slots=True)
class Figures:
    """What was driven and found, over all rounds."""

    acknowledged: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    went_through: int = 0
    redelivered: int = 0
    broken: list[str] = field(default_factory=list)


class Auditor:
    """Several callers, each with conversations of its own, so that the order of what it was answered is known."""

    def __init__(self, callers: int, seed: int, works: Mapping[str, int] = WORKS) -> None:
        self._chance = random.Random(seed)
        self._callers = [_Caller(number, random.Random(f"{seed}.{number}"), works) for number in range(callers)]
        self.figures = Figures()

    @property
    def turns(self) -> list[Turn]:
        """All that were begun."""
        return [turn for caller in self._callers for turn in caller.turns]

    @property
    def flying(self) -> int:
        """How many calls are under way."""
        return sum(caller.flying is not None for caller in self._callers)

    async def drive(self, port: Port) -> None:
        """Let all callers work until each has met a call without an answer, or after `stop` its last one."""
        await asyncio.gather(*(caller.work(port, self.figures) for caller in self._callers))

    def stop(self) -> None:
        """Let each caller end with the call that it is at."""
        for caller in self._callers:
            caller.stopping = True

    def audit(self, standing: Standing) -> None:
        """Hold the rows to what was acknowledged: nothing lost, doubled, changed, out of order or half there."""
        known = {turn.key for turn in self.turns}
        foreign = [key for key in standing.rows if key not in known and not key.work_key.startswith(RUDE)]
        if foreign:
            self.figures.broken.append(f"{len(foreign)} rows that nobody sent")
        for caller in self._callers:
            self.figures.broken += caller.audit(standing)

    async def redeliver(self, port: Port, standing: Standing, samples: int) -> None:
        """Ask again for what had no answer, and for some of what had one: each is there once."""
        for caller in self._callers:
            await caller.finish(port, standing, self.figures)
        answered = [turn for turn in self.turns if turn.entry_id]
        for turn in self._chance.sample(answered, min(samples, len(answered))):
            again = await port.append(turn)
            self.figures.redelivered += 1
            expected = ("forgotten", "") if turn.forgotten else ("duplicate", turn.entry_id)
            if (again.disposition, again.entry_id) != expected:
                self.figures.broken.append(f"a redelivered turn was {again.disposition}, expected {expected[0]}")


class _Caller:
    def __init__(self, number: int, chance: random.Random, works: Mapping[str, int]) -> None:
        self._number = number
        self._works = works
        self._chance = chance
        self.turns: list[Turn] = []
        self.flying: tuple[str, Turn] | None = None
        self.stopping = False

    async def work(self, port: Port, figures: Figures) -> None:
        while not self.stopping:
            work, turn = self._next()
            self.flying = (work, turn)
            try:
                await self._do(port, work, turn)
            except Unanswered:
                return
            figures.acknowledged[work] += 1
            self.flying = None

    def _next(self) -> tuple[str, Turn]:
        known = [turn for turn in self.turns[-_TURNS:] if turn.entry_id and not turn.forgotten]
        work = self._chance.choices(list(self._works), list(self._works.values()))[0]
        fitting = {
            "settle": [turn for turn in known if not turn.settled],
            "fit": [turn for turn in known if turn.order_id and not (turn.fitted or turn.settled)],
            "forget": known,
        }.get(work)
        if not fitting:
            return "append", self._begun()
        return work, self._chance.choice(fitting)

    def _begun(self) -> Turn:
        place = len(self.turns)
        seat = Conversation(f"seat-{self._number % 3}", f"thread-{self._number}-{place // _TURNS}")
        size = self._chance.choice([1, 5, 40, 400])
        turn = Turn(TurnKey(seat, f"w{self._number}-{place}"), f"reply {self._number}.{place} " + "é\r\n|x" * size)
        self.turns.append(turn)
        return turn

    async def _do(self, port: Port, work: str, turn: Turn) -> None:
        if work == "append":
            answer = await port.append(turn)
            turn.entry_id, turn.order_id = answer.entry_id, answer.order_id
        elif work == "settle":
            await port.settle(turn)
            turn.settled = True
        elif work == "fit":
            await port.fit(turn)
            turn.fitted = True
        else:
            await port.forget(turn)
            turn.forgotten = True

    def audit(self, standing: Standing) -> list[str]:
        broken = [way for turn in self.turns for way in self._judge(turn, standing)]
        conversations: dict[Conversation, list[Kept]] = {}
        for turn in self.turns:
            conversations.setdefault(turn.key.conversation, []).extend(standing.rows.get(turn.key, ()))
        for kept in conversations.values():
            if [each.row_id for each in kept] != sorted(each.row_id for each in kept):
                broken.append("turns stand in another order than they were acknowledged in")
            if [each.ordinal for each in kept] != list(range(1, len(kept) + 1)):
                broken.append(f"ordinals have a gap: {[each.ordinal for each in kept]}")
        return broken

    def _judge(self, turn: Turn, standing: Standing) -> list[str]:
        """What is wrong with one turn. A call without an answer may have gone either way, but whole."""
        open_work = self.flying[0] if self.flying is not None and self.flying[1] is turn else ""
        rows = standing.rows.get(turn.key, ())
        if len(rows) > 1:
            return [f"a turn stands {len(rows)} times"]
        if turn.forgotten:
            remembered = turn.key in standing.forgotten
            return [
                *(["a forgotten turn is there"] if rows else []),
                *([] if remembered else ["a Forget is forgotten"]),
            ]
        if not rows:
            may_lack = not turn.entry_id or open_work == "forget"
            return [] if may_lack else ["an acknowledged turn is lost"]
        return self._judge_row(turn, rows[0], open_work)

    def _judge_row(self, turn: Turn, row: Kept, open_work: str) -> list[str]:
        if row.entry is None:
            return ["a row does not pass its checksum"]
        fitted = any(
            each.value.state is PayloadState.CONDENSED and each.value.text == REWRITE
            for call in row.entry.calls
            for each in call.arguments
        )
        wrong = {
            "has another entry id": turn.entry_id not in ("", row.entry_id),
            "has another text": row.entry.final_text != turn.text,
            "has lost its Settle": turn.settled and not row.entry.delivered,
            "was settled by nobody": row.entry.delivered and not (turn.settled or open_work == "settle"),
            "has lost its Fit": turn.fitted and not fitted,
            "was fitted by nobody": fitted and not (turn.fitted or open_work == "fit"),
        }
        return [f"a turn {way}" for way, is_so in wrong.items() if is_so]

    async def finish(self, port: Port, standing: Standing, figures: Figures) -> None:
        """Ask again for what had no answer: it is carried out once, whether or not it was before."""
        if self.flying is None:
            return
        work, turn = self.flying
        figures.in_flight += 1
        rows = standing.rows.get(turn.key, ())
        if work == "append":
            answer = await port.append(turn)
            expected = ("duplicate", rows[0].entry_id) if rows else ("recorded", answer.entry_id)
            if (answer.disposition, answer.entry_id) != expected:
                figures.broken.append(f"an Append that was sent again was {answer.disposition}, expected {expected[0]}")
            figures.went_through += bool(rows)
            turn.entry_id, turn.order_id = answer.entry_id, answer.order_id
        else:
            await self._do(port, work, turn)
        self.flying = None
