"""The one catch-all: a bug reaches neither a caller nor the log with its text."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import grpc
import pytest
from turnledger.v1 import record_pb2

from sidecar.services.maintenance import Maintenance
from sidecar.services.record import Record
from sidecar.services.render import Render
from sidecar.store import store
from sidecar.store.append import append
from tests.support import asking
from tests.support.patience import eventually
from tests.support.refusal import refused
from tests.support.running import Caller, running, settings

Code = grpc.StatusCode


BUGS: dict[str, tuple[type, str, Callable[[Caller], Any]]] = {
    "append": (Record, "append", lambda caller: caller.record.Append(asking.append())),
    "settle": (Record, "settle", lambda caller: caller.record.Settle(asking.settle())),
    "forget": (Record, "forget", lambda caller: caller.record.Forget(asking.forget_seat())),
    "history": (Render, "history", lambda caller: caller.render.History(asking.history())),
    "user_message": (Render, "user_message", lambda caller: caller.render.UserMessage(asking.user_message())),
}


@pytest.mark.parametrize("where", BUGS)
@pytest.mark.parametrize("bug", [ValueError, TimeoutError, RecursionError, asyncio.InvalidStateError, apsw.SQLError])
async def test_a_bug_shows_nothing_of_itself(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    where: str,
    bug: type[Exception],
) -> None:
    """A bug is INTERNAL with a fixed text and an id that the log has too; neither holds the exception's text."""
    service, method, call = BUGS[where]

    def broken(*_: object) -> None:
        raise bug("SECRETWORD of a turn")

    monkeypatch.setattr(service, method, broken)
    async with running(settings(tmp_path)) as caller:
        with caplog.at_level(logging.DEBUG):
            refusal = await refused(call(caller))
        assert (refusal.code, refusal.domain, refusal.reason) == (Code.INTERNAL, "turnledger", "INTERNAL")
        assert "SECRETWORD" not in refusal.raw
        assert bug.__name__ not in refusal.raw
        assert "SECRETWORD" not in caplog.text
        trace_id = next(word for word in refusal.message.replace(";", " ").split() if len(word) == 32)
        assert trace_id in caplog.text
        assert refusal.retry_after_s is None


async def test_a_bug_in_the_store_shows_nothing_and_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A row that the store cannot take is INTERNAL for its caller alone; the calls beside it are served."""
    real = append

    def broken(db: apsw.Connection, row: Any, max_entries: int) -> Any:
        if row.key.work_key == "bad":
            raise apsw.ConstraintError("SECRETWORD")
        return real(db, row, max_entries)

    monkeypatch.setattr(store, "append", broken)
    async with running(settings(tmp_path)) as caller:
        good = [caller.record.Append(asking.append(f"w{number}")) for number in range(10)]
        refusal = await refused(caller.record.Append(asking.append("bad")))
        assert {answer.disposition for answer in await asyncio.gather(*good)} == {record_pb2.DISPOSITION_RECORDED}
        assert refusal.code is Code.INTERNAL
        assert "SECRETWORD" not in refusal.raw + caplog.text


async def test_a_bug_in_the_background_is_said_when_it_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Work that a bug ended is named in the log at once, not when the process stops, with its place and no text."""

    async def broken(_: Maintenance) -> None:
        raise ValueError("SECRETWORD")

    monkeypatch.setattr(Maintenance, "run", broken)
    async with running(settings(tmp_path)) as caller:

        async def said() -> bool:
            return "bug in maintenance" in caplog.text

        await eventually(said)
        assert "ValueError at" in caplog.text
        assert (await caller.record.Append(asking.append())).ordinal == 1
    assert "SECRETWORD" not in caplog.text
