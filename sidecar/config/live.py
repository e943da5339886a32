"""The settings of a running process: which of them a changed file changes, and what became of each look at it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

from sidecar.config.effective import Effective
from sidecar.config.file import Reading
from sidecar.config.keys import KEYS, ROOT
from sidecar.config.settings import ConversationSession, Settings

_CORRECTED: Final = "the settings file is right now; every call is refused until the sidecar has started anew with it"


class Outcome(StrEnum):
    """What became of one changed file. A metric's label: these four, and no others."""

    APPLIED = "applied"  # a live key changed
    UNCHANGED = "unchanged"  # right, and no live key changed
    BROKEN = "broken"  # wrong or gone: the settings before it stay
    CORRECTED = "corrected"  # right at last, in a process that was started with a wrong one


@dataclass(frozen=True, slots=True)
class Change:
    """One key's value before and after."""

    place: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.place} {msgspec.json.encode(self.before).decode()} -> {msgspec.json.encode(self.after).decode()}"


@dataclass(frozen=True, slots=True)
class Reload:
    """One look that came to something. `changes` hold from now on; `waiting` need a restart, and are told once.

    `message` says what is wrong, and is empty where nothing is. `recovered`: the look before it was broken.
    """

    outcome: Outcome
    changes: tuple[Change, ...] = ()
    waiting: tuple[Change, ...] = ()
    message: str = ""
    recovered: bool = False


@dataclass(frozen=True, slots=True)
class ReloadState:
    """How the settings stand. `ok` since `since` (seconds of UTC since 1970) or not, and then `message` says why.

    `counts` are the looks that came to something since the start, by outcome. `waiting` are the places of the keys
    whose new value needs a restart. `corrected`: the process was started with wrong settings and the file is right now.
    """

    ok: bool
    since: float
    message: str = ""
    counts: Mapping[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    waiting: tuple[str, ...] = ()
    corrected: bool = False


class LiveSettings:
    """What holds now. Pure: what was found is handed in, and the clock is the caller's (seconds of UTC since 1970)."""

    def __init__(self, start: Effective, clock: Callable[[], float]) -> None:
        self._start = start
        self._clock = clock
        self._settings = start.settings
        self._seen = self._judged = start.reading
        self._good = None if start.problems else start.reading
        self._waiting: dict[str, Change] = {}
        self._state = ReloadState(not start.problems, clock(), "; ".join(start.problems))

    def current(self) -> Settings:
        """The settings that hold. Cheap: asked for at each call."""
        return self._settings

    def session(self) -> ConversationSession:
        """The part with the live keys. Cheap: asked for at each call."""
        return self._settings.turn_engine.conversation_session

    def state(self) -> ReloadState:
        """How the settings stand. Cheap."""
        return self._state

    @property
    def unsettled(self) -> bool:
        """Whether the file read last was seen once only: it may be half written, and is to be read again soon."""
        return self._seen != self._judged

    def offer(self, found: Effective, *, asked: bool = False) -> Reload | None:
        """Take what was found at the file's path; answers what it came to, or None where there is nothing to tell.

        A file counts once it is seen twice, since an editor writes in place and half a file may well be valid. One that
        a person `asked` for counts at once, and always comes to something.
        """
        settled = asked or found.reading == self._seen
        self._seen = found.reading
        if not settled or (found.reading == self._judged and not asked):
            return None
        self._judged = found.reading
        problems = found.problems or self._emptied(found.reading)
        reload = Reload(Outcome.BROKEN, message="; ".join(problems)) if problems else self._right(found)
        self._note(reload)
        return reload

    def _emptied(self, reading: Reading) -> tuple[str, ...]:
        """A file that lost its last byte is about to be written, or was lost: no reason to go back to the defaults."""
        was_empty = self._good is not None and not self._good.text.strip()
        if was_empty or reading.text.strip():
            return ()
        return (f"{self._start.inputs.path}: it is empty; where the defaults are meant, leave a comment in it",)

    def _right(self, found: Effective) -> Reload:
        self._good = found.reading
        recovered = not self._state.ok
        if self._start.problems:
            return Reload(Outcome.CORRECTED, message=_CORRECTED, recovered=recovered)
        changes = self._apply(found.settings)
        waiting = self._wait(found.settings)
        return Reload(Outcome.APPLIED if changes else Outcome.UNCHANGED, changes, waiting, recovered=recovered)

    def _apply(self, wanted: Settings) -> tuple[Change, ...]:
        changes = tuple(
            Change(key.place, key.of(self._settings), key.of(wanted))
            for key in KEYS
            if key.live and key.of(self._settings) != key.of(wanted)
        )
        values = {key.place: key.of(wanted if key.live else self._settings) for key in KEYS}
        self._settings = ROOT.settings(values)
        return changes

    def _wait(self, wanted: Settings) -> tuple[Change, ...]:
        """The keys that this process cannot take, each told once for a value."""
        before = self._waiting
        self._waiting = {
            key.place: Change(key.place, key.of(self._settings), key.of(wanted))
            for key in KEYS
            if key.of(self._settings) != key.of(wanted)
        }
        return tuple(change for place, change in self._waiting.items() if before.get(place) != change)

    def _note(self, reload: Reload) -> None:
        ok = reload.outcome in {Outcome.APPLIED, Outcome.UNCHANGED}
        self._state = ReloadState(
            ok=ok,
            since=self._state.since if ok == self._state.ok else self._clock(),
            message=reload.message,
            counts={**self._state.counts, reload.outcome: self._state.counts[reload.outcome] + 1},
            waiting=tuple(self._waiting),
            corrected=reload.outcome is Outcome.CORRECTED,
        )
