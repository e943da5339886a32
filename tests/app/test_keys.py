"""Each key, from the file or its variable to what a running sidecar does: those that no other test sees at work."""

import asyncio
import json
import signal
from pathlib import Path

import grpc
import pytest

from tests.support import asking
from tests.support.config_map import ConfigMap
from tests.support.patience import eventually, served
from tests.support.running import calling, free_port, process
from tests.support.stores import beside, files_in


async def _told(folder: Path, **variables: str) -> str:
    """The log of a start and a stop, with these variables."""
    listen = f"unix://{folder}/s.sock"
    async with process(listen, store=folder / "store.db", variables=variables) as one:

        async def listens() -> bool:
            return (folder / "s.sock").exists()

        await eventually(listens)
        await asyncio.sleep(0.3)
        one.send(signal.SIGTERM)
        assert await one.ended() == 0
        return one.log


async def test_the_log_level(tmp_path: Path) -> None:
    """`telemetry.log_level` leaves out what is below it."""
    assert "listening on" in await _told(tmp_path)
    assert await _told(tmp_path, TURNLEDGER_TELEMETRY_LOG_LEVEL="error") == ""


async def test_the_log_format(tmp_path: Path) -> None:
    """`telemetry.log_format` is JSON where nobody watches, and text where it is asked for."""
    assert json.loads((await _told(tmp_path)).splitlines()[0])["level"] == "info"
    first = (await _told(tmp_path, TURNLEDGER_TELEMETRY_LOG_FORMAT="text")).splitlines()[0]
    assert " INFO    turnledger.app: " in first


async def test_the_places(tmp_path: Path) -> None:
    """`listen`, `health` and `store` in the file are where the sidecar listens, is probed, and keeps its turns."""
    port, health = free_port(), free_port()
    file = tmp_path / "settings.yaml"
    file.write_text(
        f"sidecar:\n  listen: 127.0.0.1:{port}\n  health: 127.0.0.1:{health}\n  store: {tmp_path}/deep/er/turns.db\n"
    )
    async with process("", "--config", str(file), variables={"TURNLEDGER_HEALTH": f"127.0.0.1:{health}"}) as one:
        await one.says("the store is open")
        await one.says(f"health on 127.0.0.1:{health}")
        async with calling(f"127.0.0.1:{port}") as caller:
            await caller.record.Append(asking.append())
        assert "turns.db" in files_in(tmp_path / "deep" / "er")


async def test_the_limit_of_calls(tmp_path: Path) -> None:
    """`limits.concurrent_calls` is how many are served at once; the next is shed."""
    limit = {"TURNLEDGER_LIMITS_CONCURRENT_CALLS": "1"}
    async with (
        process(f"unix://{tmp_path}/s.sock", store=tmp_path / "store.db", variables=limit) as one,
        calling(one.target) as caller,
    ):
        await one.says("the store is open")
        with beside(tmp_path / "store.db") as db:
            db.execute("BEGIN IMMEDIATE")  # a foreign writer: the first call waits for it
            first = asyncio.ensure_future(caller.record.Append(asking.append("w1")))
            await asyncio.sleep(0.3)
            with pytest.raises(grpc.aio.AioRpcError) as shed:
                await caller.record.Append(asking.append("w2"))
            assert shed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            db.execute("ROLLBACK")
        await first


async def test_a_lowered_bound_trims_from_the_next_sweep_on(tmp_path: Path) -> None:
    """A lowered `max_entries` shows less at once, destroys nothing by a write, and is carried out by the next sweep."""

    def text(max_entries: int) -> str:
        session = f"turn_engine: {{conversation_session: {{max_entries: {max_entries}}}}}"
        return f"{session}\nsidecar: {{sweep: {{interval_s: 3}}}}\n"

    mount = ConfigMap(tmp_path / "etc", text(20))
    async with (
        process(f"unix://{tmp_path}/s.sock", "--config", str(mount.path), store=tmp_path / "store.db") as one,
        calling(one.target) as caller,
    ):
        await one.says("the store is open")
        for number in range(6):
            await served(lambda number=number: caller.record.Append(asking.append(f"w{number}")))  # type: ignore[misc]
        mount.update(text(2))
        await one.says("max_entries 20 -> 2")
        await caller.record.Append(asking.append("w6"))
        assert (await caller.render.History(asking.history())).history.shown == 2

        def kept() -> int:
            with beside(tmp_path / "store.db") as db:
                count: int = db.execute("SELECT count(*) FROM conversation_sessions WHERE trimmed = 0").get
                return count

        before = kept()

        async def trimmed() -> bool:
            return kept() == 2

        await eventually(trimmed)
        assert before in (2, 7)  # 7 unless a sweep came between the write and the look
