"""The Python client's driver for the language-neutral cases; README.md beside it has the protocol.

`python -m tests.conformance.driver` drives `BlockingLedger`; with `--asyncio`, `Ledger`.
"""

import asyncio
import inspect
import json
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from turnledger import (
    BlockingLedger,
    ConversationScope,
    Deadlines,
    Failure,
    Forgotten,
    InvalidSavedTurn,
    Ledger,
    LedgerError,
    NoBudget,
    Order,
    Receipt,
    Reply,
    SeatScope,
    Settlement,
    TurnScope,
    Unsent,
)
from turnledger.identity import work_key

Command = dict[str, Any]

#: Texts over so many bytes of UTF-8 are answered by digest and size.
SHOWN_BYTES: Final = 65_536
LARGEST_PLAIN_NUMBER: Final = 2**53 - 1
#: What a rewriter that hangs waits: longer than any case, shorter than a night.
HANG_SECONDS: Final = 60.0


class Rewriter:
    """Gives the case's answers in order, the last one from then on, and remembers what it was asked."""

    def __init__(self, answers: list[Command]) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._running = 0
        self.most_at_once = 0
        self.calls: list[Command] = []

    def __call__(self, order: Order) -> str:
        with self._lock:
            said = self._answers[min(len(self.calls), len(self._answers) - 1)]
            self.calls.append(_call(order))
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        try:
            self._over.wait(HANG_SECONDS if said.get("hang") else said.get("after", 0))
            if said.get("no_budget"):
                raise NoBudget
            if said.get("error"):
                raise OSError
            return text(said.get("text"))
        finally:
            with self._lock:
                self._running -= 1

    def release(self) -> None:
        """Let calls that hang return."""
        self._over.set()


class Driver:
    """One ledger at a time, and its turns by name."""

    def __init__(self, *, with_asyncio: bool) -> None:
        self._ledger_type: Any = Ledger if with_asyncio else BlockingLedger
        self._ledger: Any = None
        self._rewriter: Rewriter | None = None
        self._turns: dict[str, Any] = {}

    async def answer(self, command: Command) -> Command:
        """What came of a command, without its id."""
        handler: Callable[[Command], Awaitable[Any]] | None = getattr(self, f"_do_{command['do']}", None)
        if handler is None:
            return {"refused": "unknown_command"}
        try:
            return {"ok": neutral(await handler(command))}
        except LedgerError as error:
            return {"failed": neutral(failure(error.failure))}
        except InvalidSavedTurn:
            return {"refused": "saved_turn"}
        except (ValueError, TypeError):
            return {"refused": "argument"}

    async def _do_open(self, command: Command) -> Command:
        await self._do_close(command)
        answers = command.get("rewriter")
        self._rewriter = Rewriter(answers) if answers else None
        options: Command = {"rewrites_at_once": command.get("rewrites_at_once")}
        deadlines = Deadlines(**command.get("deadlines") or {})
        self._ledger = self._ledger_type(
            command["target"], deadlines=deadlines, rewriter=self._rewriter, **_given(options)
        )
        return {}

    async def _do_close(self, _command: Command) -> Command:
        ledger, self._ledger, self._turns = self._ledger, None, {}
        if ledger is not None:
            await _now(ledger.close())
        if self._rewriter is not None:
            self._rewriter.release()
        return {}

    async def _do_begin(self, command: Command) -> Command:
        keys = {name: text(command[name]) for name in ("agent_handle", "conversation_key", "turn_id", "work_key")}
        options = {
            "wait_for_notes": command.get("wait_for_notes"),
            "hard_limit_bytes": number(command, "hard_limit_bytes"),
        }
        return self._began(command, await _now(self._ledger.begin(**keys, **_given(options))))

    async def _do_resume(self, command: Command) -> Command:
        return self._began(command, self._ledger.resume(command["saved"]))

    async def _do_called(self, command: Command) -> Command:
        error = command.get("error")
        self._turn(command).called(
            text(command["name"]),
            text(command["arguments"]),
            kind=command.get("kind"),
            error=None if error is None else text(error),
            sensitive=[text(name) for name in command.get("sensitive") or ()],
        )
        return {}

    async def _do_user_message(self, command: Command) -> Command:
        parts = {name: text(command.get(name)) for name in ("task", "context", "prior_work")}
        numbers = {name: number(command, name) for name in ("iteration", "system_bytes", "tool_bytes")}
        return {"text": await _now(self._turn(command).user_message(phase=command["phase"], **parts, **numbers))}

    async def _do_complete(self, command: Command) -> Command:
        outcome = Unsent(text(command["unsent"])) if "unsent" in command else Reply(text(command["reply"]))
        names = ("trigger", "intent", "decision", "completed_work", "blocked_on")
        texts = {name: text(command[name]) for name in names if command.get(name) is not None}
        moment = command.get("completed_at")
        options = {
            "completed_at": None if moment is None else datetime.fromisoformat(moment),
            "rewrite": command.get("rewrite"),
        }
        receipt = await _now(self._turn(command).complete(outcome, **{"trigger": "", **texts}, **_given(options)))
        return _receipt(receipt)

    async def _do_suspended(self, command: Command) -> Command:
        return _receipt(await _now(self._turn(command).suspended()))

    async def _do_crashed(self, command: Command) -> Command:
        return _receipt(await _now(self._turn(command).crashed()))

    async def _do_save(self, command: Command) -> Command:
        return {"saved": Whole(self._turn(command).save())}

    async def _do_settle(self, command: Command) -> Command:
        names = ("agent_handle", "conversation_key", "work_key")
        settlement: Settlement = await _now(self._ledger.settle(**{name: text(command[name]) for name in names}))
        return {**asdict(settlement), "failure": failure(settlement.failure)}

    async def _do_forget(self, command: Command) -> Command:
        kinds = {"turn_scope": TurnScope, "conversation_scope": ConversationScope, "seat_scope": SeatScope}
        (scope,) = [
            kind(**{key: text(value) for key, value in command[name].items()})
            for name, kind in kinds.items()
            if name in command
        ]
        forgotten: Forgotten = await _now(self._ledger.forget(scope))
        return asdict(forgotten)

    async def _do_drain(self, command: Command) -> Command:
        return {"drained": await _now(self._ledger.drain(command["seconds"]))}

    async def _do_rewrites(self, _command: Command) -> Command:
        if self._rewriter is None:
            return {"calls": [], "most_at_once": 0}
        return {"calls": self._rewriter.calls, "most_at_once": self._rewriter.most_at_once}

    async def _do_stats(self, _command: Command) -> Command:
        return asdict(self._ledger.stats)

    async def _do_work_key(self, command: Command) -> Command:
        return {"work_key": work_key([text(each) for each in command["trigger_ids"]])}

    def _turn(self, command: Command) -> Any:
        return self._turns[command.get("turn") or "turn"]

    def _began(self, command: Command, turn: Any) -> Command:
        self._turns[command.get("as") or "turn"] = turn
        return {
            "history": None if turn.history is None else asdict(turn.history),
            "read_failure": failure(turn.read_failure),
            "already_recorded": turn.already_recorded,
        }


class Whole(str):
    """A text that is answered as it is, however long."""

    __slots__ = ()


def text(value: Any) -> str:
    """A TEXT as a str; the empty one for None. Raises KeyError at a recipe that is none."""
    if value is None or isinstance(value, str):
        return value or ""
    if "repeat" in value:
        return text(value["repeat"]) * int(value["times"])
    if "join" in value:
        return "".join(text(part) for part in value["join"])
    units = b"".join(int(unit, 16).to_bytes(2, "big") for unit in value["utf16"])
    return units.decode("utf-16-be", "surrogatepass")


def number(command: Command, name: str) -> int | None:
    """A NUMBER of a command; None where it has none."""
    value = command.get(name)
    return None if value is None else int(value)


def neutral(value: Any) -> Any:
    """A value as an answer says it: large texts by digest, large numbers as digits."""
    if isinstance(value, dict):
        return {name: neutral(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [neutral(each) for each in value]
    if isinstance(value, str) and not isinstance(value, Whole):
        data = value.encode()
        return value if len(data) <= SHOWN_BYTES else {"sha256": sha256(data).hexdigest(), "bytes": len(data)}
    if isinstance(value, int) and abs(value) > LARGEST_PLAIN_NUMBER:
        return str(value)
    return value


def failure(value: Failure | None) -> Command | None:
    """A failure as an answer says it."""
    if value is None:
        return None
    fields = [violation.field for violation in value.violations]
    return {"code": value.code, "reason": value.reason, "retry_after": value.retry_after, "fields": fields}


def _receipt(receipt: Receipt) -> Command:
    return {**asdict(receipt), "failure": failure(receipt.failure)}


def _call(order: Order) -> Command:
    names = ("kind", "text", "limit_bytes", "agent_handle", "attempt", "rejection", "over_by_bytes")
    return {name: getattr(order, name) for name in names}


def _given(options: Command) -> Command:
    """The options that the command named."""
    return {name: value for name, value in options.items() if value is not None}


async def _now(came: Any) -> Any:
    """What came: at once from the blocking ledger, awaited from the other."""
    return await came if inspect.isawaitable(came) else came


async def serve(driver: Driver) -> None:
    """Answer command after command, until there are no more."""
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        command = json.loads(line)
        try:
            said = await driver.answer(command)
        except Exception as error:  # noqa: BLE001 - a driver goes on with the next command, whatever this one met
            said = {"broken": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps({"id": command["id"], **said}) + "\n")
        sys.stdout.flush()
    await driver.answer({"do": "close"})


if __name__ == "__main__":
    asyncio.run(serve(Driver(with_asyncio="--asyncio" in sys.argv[1:])))
