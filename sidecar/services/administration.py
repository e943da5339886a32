"""What a person may ask of a running sidecar: counts, checks, backups, sweeps, erasures. Contents never."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec

from sidecar.config.live import ReloadState
from sidecar.domain.eligibility import Conversation, TurnKey
from sidecar.domain.errors import Code, LedgerError
from sidecar.services.health import Health
from sidecar.services.maintenance import Maintenance
from sidecar.services.record import Erasure, Record, Scope, Seat
from sidecar.store.progress import Report
from sidecar.store.store import Store

T = TypeVar("T")

_log: Final = logging.getLogger("turnledger.admin")

#: What an answer is made of: values that JSON has.
Answer = dict[str, Any]


class Command(Protocol):
    """One command: its arguments as they came, checked by it; its answer."""

    async def __call__(self, arguments: Mapping[str, Any], report: Report) -> Answer: ...


class BackupArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`to` is an absolute path on the owner's own file system."""

    to: str


class SweepArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`trust_clock` leaves out the second look."""

    trust_clock: bool = False


class ForgetArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of a seat; of its conversation, where that is given; of its turn, where the work key is."""

    agent_handle: str
    conversation_key: str | None = None
    work_key: str | None = None

    def scope(self) -> Scope:
        """The scope. Raises `LedgerError` for a key that is no text, or empty: never does that mean more."""
        keys = [key for key in (self.agent_handle, self.conversation_key, self.work_key) if key is not None]
        if "" in keys:
            raise LedgerError(Code.INVALID, "a key that is given is not empty")
        if not all(map(_is_text, keys)):
            raise LedgerError(Code.INVALID, "a key is valid UTF-8; no other was ever recorded")
        if self.conversation_key is None:
            if self.work_key is not None:
                raise LedgerError(Code.INVALID, "a work key needs its conversation")
            return Seat(self.agent_handle)
        conversation = Conversation(self.agent_handle, self.conversation_key)
        return conversation if self.work_key is None else TurnKey(conversation, self.work_key)


class Administration:
    """The commands by name."""

    def __init__(
        self,
        store: Store,
        record: Record,
        maintenance: Maintenance,
        health: Health,
        settings: Callable[[], ReloadState],
    ) -> None:
        self._store = store
        self._record = record
        self._maintenance = maintenance
        self._health = health
        self._settings = settings
        self._commands: dict[str, Command] = {
            "stats": self._stats,
            "check": self._check,
            "backup": self._backup,
            "sweep": self._sweep,
            "forget": self._forget,
        }

    async def run(self, command: str, arguments: Mapping[str, Any], report: Report) -> Answer:
        """Run one. `report` may be called on any thread. Raises `LedgerError`, INVALID for what it cannot take."""
        found = self._commands.get(command)
        if found is None:
            raise LedgerError(Code.INVALID, f"no such command; there are {', '.join(self._commands)}")
        _log.info("asked for: %s", command)
        return await found(arguments, report)

    async def _stats(self, arguments: Mapping[str, Any], report: Report) -> Answer:  # noqa: ARG002  a Command
        state = self._settings()
        answer: Answer = {
            "health": {name: asdict(each) for name, each in (await self._health.states()).items()},
            "settings": {
                "ok": state.ok,
                "since": state.since,
                "message": state.message,
                "waiting": list(state.waiting),
            },
        }
        try:
            totals, sizes = await self._store.totals(), await self._store.sizes()
        except LedgerError as error:
            return {**answer, "store": {"open": False, "reason": error.code.value, "message": error.message}}
        return {**answer, "store": {"open": True}, "totals": asdict(totals), "sizes": asdict(sizes)}

    async def _check(self, arguments: Mapping[str, Any], report: Report) -> Answer:  # noqa: ARG002  a Command
        found = await self._store.check(report)
        return {"sound": found.sound, **asdict(found)}

    async def _backup(self, arguments: Mapping[str, Any], report: Report) -> Answer:
        to = Path(_checked(arguments, BackupArguments).to)
        if not to.is_absolute() or "\0" in str(to):
            raise LedgerError(Code.INVALID, "the path of a backup is absolute, and holds no NUL")
        return asdict(await self._store.backup(to, report))

    async def _sweep(self, arguments: Mapping[str, Any], report: Report) -> Answer:  # noqa: ARG002  a Command
        return await sweep(self._maintenance, arguments)

    async def _forget(self, arguments: Mapping[str, Any], report: Report) -> Answer:  # noqa: ARG002  a Command
        return await forget(self._record, arguments)


async def sweep(maintenance: Maintenance, arguments: Mapping[str, Any]) -> Answer:
    """Sweep now."""
    return asdict(await maintenance.sweep(trust_clock=_checked(arguments, SweepArguments).trust_clock))


async def forget(record: Record, arguments: Mapping[str, Any]) -> Answer:
    """Erase what the arguments name."""
    forgotten = await record.forget(_checked(arguments, ForgetArguments).scope())
    return {"forgotten": forgotten.forgotten, "complete": forgotten.erasure is Erasure.COMPLETE}


def _is_text(key: str) -> bool:
    """Bytes of a command line that are no UTF-8 arrive as halves of surrogate pairs."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def _checked(arguments: Mapping[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise LedgerError(Code.INVALID, str(error)) from error
