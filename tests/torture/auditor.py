"""An auditor: drives a ledger with many callers, remembers what was acknowledged, and holds the store's rows to it."""

import asyncio
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from sidecar.domain.eligibility import Conversation, TurnKey
from sidecar.domain.payload import PayloadState
from tests.torture.standing import Kept, Standing, Turn

#: Over budget, so that an order is issued for it; and a rewrite of it that is good.
LONG: Final = "the valve at the north gate was opened a little and closed again " * 5
REWRITE: Final = "the valve was opened and closed"

#: Work keys that begin so are nobody's whom the auditor knows.
RUDE: Final = ("rude-", "crowd")

#: What callers do, and how often: each one call at a time, or some turns sent twice at once.
WORKS: Final[Mapping[str, int]] = {"append": 70, "settle": 12, "fit": 12, "forget": 6}
WITH_TWINS: Final[Mapping[str, int]] = {**WORKS, "append": 60, "append twice at once": 10}

#: Entries kept of one conversation; what is older is trimmed.
KEPT: Final = 20

#: Turns of one conversation before its callers go on in another: some are trimmed by then.
_TURNS: Final = 30

#: Callers that share a conversation.
_TOGETHER: Final = 4

#: A caller settles, fits and forgets its own newest turns alone, so that few of them are trimmed by then.
_NEWEST: Final = 6


class Unanswered(Exception):
    """The call ended without an answer: what it asked for may be or may not be."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an Append answered: `recorded`, `duplicate` or `forgotten`."""

    disposition: str
    entry_id: str
    order_id: str = ""


class Port(Protocol):
    """The ledger as the auditor reaches it. Every method raises `Unanswered`.

    Settle and Fit answer whether the turn now is what was asked for: not where its entry is no longer kept.
    """

    async def append(self, turn: Turn) -> Answer: ...

    async def settle(self, turn: Turn) -> bool: ...

    async def fit(self, turn: Turn) -> bool: ...

    async def forget(self, turn: Turn) -> None: ...


@dataclass(slots=True)
class Figures:
    """What was driven and found, over all rounds."""

    acknowledged: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    went_through: int = 0
    redelivered: int = 0
    broken: list[str] = field(default_factory=list)

    def add(self, other: "Figures") -> None:
        """Count another auditor's as well."""
        self.acknowledged += other.acknowledged
        self.in_flight += other.in_flight
        self.went_through += other.went_through
        self.redelivered += other.redelivered
        self.broken += other.broken

    @property
    def effects(self) -> str:
        """What was acknowledged, for a reader."""
        names = {"append": "Appends", "settle": "Settles", "fit": "Fits", "forget": "Forgets"}
        return ", ".join(f"{self.acknowledged[work]} {name}" for work, name in names.items())


class Auditor:
    """Several callers, some to a conversation."""

    def __init__(self, callers: int, seed: int, works: Mapping[str, int] = WORKS) -> None:
        self._chance = random.Random(seed)
        self._ticks = itertools.count(1)
        self._callers = [
            _Caller(number, random.Random(f"{seed}.{number}"), works, self._ticks) for number in range(callers)
        ]
        #: Turns of a time past retention, in no conversation of the callers'.
        self.old: list[Turn] = []
        #: Whether a sweep was asked for, and whether one was answered.
        self.sweeping = False
        self.swept = False
        self.figures = Figures()

    @property
    def turns(self) -> list[Turn]:
        """All that there may be."""
        return [*self.old, *(turn for caller in self._callers for turn in caller.turns)]

    @property
    def flying(self) -> int:
        """How many calls are under way."""
        return sum(caller.flying is not None for caller in self._callers)

    async def drive(self, port: Port) -> None:
        """Let all callers work until each has met a call without an answer, or `stop`."""
        await asyncio.gather(*(caller.work(port, self.figures) for caller in self._callers))

    def stop(self) -> None:
        """Let no caller begin another call."""
        for caller in self._callers:
            caller.stopped = True

    def conversations(self) -> Mapping[Conversation, Sequence[Turn]]:
        """The callers' turns by their conversation."""
        found: dict[Conversation, list[Turn]] = defaultdict(list)
        for caller in self._callers:
            for turn in caller.turns:
                found[turn.key.conversation].append(turn)
        return found

    def acknowledged(self) -> list[Turn]:
        """The turns that are there for sure: a backup that begins now holds them. May be asked on any thread."""
        turns = [turn for caller in self._callers for turn in [*caller.turns]]
        old = [] if self.sweeping else self.old
        return [*old, *(turn for turn in turns if turn.entry_id and not turn.forgotten)]

    def audit(self, standing: Standing) -> None:
        """Hold the rows to what was acknowledged: nothing lost, doubled, changed, out of order or half there."""
        known = {turn.key for turn in self.turns}
        foreign = [key for key in standing.rows if key not in known and not key.work_key.startswith(RUDE)]
        if foreign:
            self.figures.broken.append(f"{len(foreign)} rows that nobody sent")
        for caller in self._callers:
            self.figures.broken += caller.audit(standing)
        self.figures.broken += self._audit_order(standing)
        self.figures.broken += self._audit_old(standing)

    def audit_backup(self, standing: Standing, before: Sequence[Turn]) -> None:
        """A backup holds what was acknowledged `before` it began, but for what was forgotten or swept since."""
        past = {turn.key for turn in self.old} if self.sweeping else set()
        for turn in before:
            rows = len(standing.rows.get(turn.key, ()))
            may_lack = turn.key in standing.forgotten or turn.key in past
            if rows > 1 or (rows == 0 and not may_lack):
                self.figures.broken.append(f"a backup holds an acknowledged turn {rows} times")
        texts = {turn.key: turn.text for turn in self.turns}
        for key, found in standing.rows.items():
            for row in found:
                if not row.trimmed and (row.entry is None or row.entry.final_text != texts.get(key)):
                    self.figures.broken.append("a backup holds what nobody sent")

    async def redeliver(self, port: Port, standing: Standing, samples: int) -> None:
        """Ask again for what had no answer, and for some of what had one: each is there once."""
        for caller in self._callers:
            await caller.finish(port, standing, self.figures)
        answered = [turn for caller in self._callers for turn in caller.turns if turn.entry_id]
        for turn in self._chance.sample(answered, min(samples, len(answered))):
            again = await port.append(turn)
            self.figures.redelivered += 1
            expected = ("forgotten", "") if turn.forgotten else ("duplicate", turn.entry_id)
            if (again.disposition, again.entry_id) != expected:
                self.figures.broken.append(f"a redelivered turn was {again.disposition}, expected {expected[0]}")

    def _audit_order(self, standing: Standing) -> list[str]:
        broken = []
        now = next(self._ticks)
        for turns in self.conversations().values():
            placed = standing.placed(turns)
            for _, turn in placed:
                turn.ended = turn.ended or now  # without an answer, and there all the same
            broken += _order(placed)
            broken += _trims([row for row, _ in placed], taken=len(turns) - len(placed))
        return broken

    def _audit_old(self, standing: Standing) -> list[str]:
        """What is past retention goes whole, and only where a sweep was asked for."""
        rows = [(turn, standing.rows.get(turn.key, ())) for turn in self.old]
        left = [(turn, found[0]) for turn, found in rows if found]
        wrong = {
            "turns past retention went without a sweep": len(left) < len(rows) and not self.sweeping,
            "a finished sweep left turns past retention": bool(left) and self.swept,
            "a turn past retention stands twice": any(len(found) > 1 for _, found in rows),
            "a turn past retention is damaged": any(
                row.entry is None or row.entry.final_text != turn.text or row.entry_id != turn.entry_id
                for turn, row in left
            ),
        }
        return [way for way, is_so in wrong.items() if is_so]


def _order(placed: Sequence[tuple[Kept, Turn]]) -> list[str]:
    broken = []
    if [row.ordinal for row, _ in placed] != list(range(1, len(placed) + 1)):
        broken.append(f"ordinals have a gap: {[row.ordinal for row, _ in placed]}")
    if [row.row_id for row, _ in placed] != sorted(row.row_id for row, _ in placed):
        broken.append("ordinals and rows are in different orders")
    latest = 0
    for _, turn in placed:
        if turn.ended is not None and turn.ended < latest:
            broken.append("turns stand in another order than they were acknowledged in")
        latest = max(latest, turn.began)
    return broken


def _trims(rows: Sequence[Kept], taken: int) -> list[str]:
    """Trimmed are the oldest alone, and only where `KEPT` newer ones came, of which `taken` are gone since."""
    trimmed = [place for place, row in enumerate(rows) if row.trimmed]
    kept = len(rows) - len(trimmed)
    wrong = {
        "others than the oldest turns are trimmed": trimmed != list(range(len(trimmed))),
        "more entries are kept than may be": kept > KEPT,
        "entries were trimmed that are to be kept": bool(trimmed) and kept + taken < KEPT,
    }
    return [way for way, is_so in wrong.items() if is_so]


def _is_fitted(row: Kept) -> bool:
    return row.entry is not None and any(
        each.value.state is PayloadState.CONDENSED and each.value.text == REWRITE
        for call in row.entry.calls
        for each in call.arguments
    )


class _Caller:
    def __init__(
        self, number: int, chance: random.Random, works: Mapping[str, int], ticks: "itertools.count[int]"
    ) -> None:
        self._number = number
        self._works = works
        self._chance = chance
        self._ticks = ticks
        self.turns: list[Turn] = []
        self.flying: tuple[str, Turn] | None = None
        self.stopped = False

    async def work(self, port: Port, figures: Figures) -> None:
        while not self.stopped:
            work, turn = self._next()
            self.flying = (work, turn)
            try:
                await self._do(port, work, turn, figures)
            except Unanswered:
                return
            figures.acknowledged[work.split()[0]] += 1
            self.flying = None

    def _next(self) -> tuple[str, Turn]:
        known = [turn for turn in self.turns[-_NEWEST:] if turn.entry_id and not turn.forgotten]
        work = self._chance.choices(list(self._works), list(self._works.values()))[0]
        if work.startswith("append"):
            return work, self._begun()
        fitting = {
            "settle": [turn for turn in known if not turn.settled],
            "fit": [turn for turn in known if turn.order_id and not (turn.fitted or turn.settled)],
            "forget": known,
        }[work]
        return (work, self._chance.choice(fitting)) if fitting else ("append", self._begun())

    def _begun(self) -> Turn:
        place = len(self.turns)
        group, part = self._number // _TOGETHER, place // (_TURNS // _TOGETHER)
        seat = Conversation(f"seat-{group % 3}", f"thread-{group}-{part}")
        size = self._chance.choice([1, 5, 40, 400])
        turn = Turn(TurnKey(seat, f"w{self._number}-{place}"), f"reply {self._number}.{place} " + "é\r\n|x" * size)
        self.turns.append(turn)
        return turn

    async def _do(self, port: Port, work: str, turn: Turn, figures: Figures) -> None:
        if work.startswith("append"):
            await self._append(port, turn, figures, times=2 if work == "append twice at once" else 1)
        elif work == "settle":
            turn.settled = await port.settle(turn)
        elif work == "fit":
            turn.fitted = await port.fit(turn)
        else:
            await port.forget(turn)
            turn.forgotten = True

    async def _append(self, port: Port, turn: Turn, figures: Figures, times: int) -> None:
        turn.began = next(self._ticks)
        outcomes = await asyncio.gather(*(_answer(port, turn) for _ in range(times)))
        answers = [outcome for outcome in outcomes if outcome is not None]
        if answers:
            turn.ended = next(self._ticks)
            turn.entry_id, turn.order_id = answers[0].entry_id, answers[0].order_id
        if len({answer.entry_id for answer in answers}) > 1:
            figures.broken.append("one turn, sent twice at once, has two entry ids")
        if sum(answer.disposition == "recorded" for answer in answers) > 1:
            figures.broken.append("one turn, sent twice at once, was recorded twice")
        if len(answers) < times:
            raise Unanswered

    def audit(self, standing: Standing) -> list[str]:
        return [way for turn in self.turns for way in self._judge(turn, standing)]

    def _judge(self, turn: Turn, standing: Standing) -> list[str]:
        """What is wrong with one turn. A call without an answer may have gone either way, but whole."""
        open_work = self.flying[0] if self.flying is not None and self.flying[1] is turn else ""
        rows = standing.rows.get(turn.key, ())
        remembered = turn.key in standing.forgotten
        wrong = {
            f"a turn stands {len(rows)} times": len(rows) > 1,
            "a forgotten turn is there": bool(rows) and remembered,
            "a Forget is forgotten": turn.forgotten and not remembered,
            "a turn was forgotten by nobody": remembered and not turn.forgotten and open_work != "forget",
            "an acknowledged turn is lost": bool(turn.entry_id) and not rows and not remembered,
        }
        found = [way for way, is_so in wrong.items() if is_so]
        return found or [way for row in rows for way in self._judge_row(turn, row, open_work)]

    def _judge_row(self, turn: Turn, row: Kept, open_work: str) -> list[str]:
        if turn.entry_id not in ("", row.entry_id):
            return ["a turn has another entry id"]
        if row.trimmed:
            return []
        if row.entry is None:
            return ["a row does not pass its checksum"]
        fitted = _is_fitted(row)
        wrong = {
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
        rows = standing.rows.get(turn.key, ())
        if work.startswith("append"):
            await self._append_again(port, turn, rows, figures)
        elif work == "fit" and any(_is_fitted(row) for row in rows):
            turn.fitted = True
            if await port.fit(turn):
                figures.broken.append("a Fit that had gone through was accepted once more")
        else:
            await self._do(port, work, turn, figures)
        figures.in_flight += 1
        self.flying = None

    async def _append_again(self, port: Port, turn: Turn, rows: Sequence[Kept], figures: Figures) -> None:
        began = next(self._ticks)
        answer = await port.append(turn)
        expected = ("duplicate", rows[0].entry_id) if rows else ("recorded", answer.entry_id)
        if (answer.disposition, answer.entry_id) != expected:
            figures.broken.append(f"an Append that was sent again was {answer.disposition}, expected {expected[0]}")
        if not rows:
            turn.began, turn.ended = began, next(self._ticks)
        figures.went_through += bool(rows)
        turn.entry_id, turn.order_id = answer.entry_id, answer.order_id


async def _answer(port: Port, turn: Turn) -> Answer | None:
    try:
        return await port.append(turn)
    except Unanswered:
        return None
