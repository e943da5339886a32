"""Two sidecars, one socket, one store: the second waits, harms nobody, and takes over."""

import asyncio
import os
import signal
import stat
import time
from pathlib import Path

import pytest
from turnledger.v1 import record_pb2

from sidecar.app.app import App, Launch
from sidecar.store.lock import Lock
from tests.support import asking
from tests.support.patience import PATIENCE_S
from tests.support.refusal import refused
from tests.support.running import calling, process, settings, started
from tests.support.stores import open_store

#: Seconds within which the second has to serve once the first is gone.
HANDOVER_S = 1.0


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
async def test_second_process_waits_and_takes_over(tmp_path: Path, end: signal.Signals) -> None:
    """The second process waits unbound while the first serves, and serves its turns within a second of its end."""
    listen, store = f"unix://{tmp_path}/s.sock", tmp_path / "store.db"
    async with process(listen, store=store) as first, calling(first.target) as caller:
        await first.says("the store is open")
        inode = (tmp_path / "s.sock").stat().st_ino
        await caller.record.Append(asking.append("w1"))
        async with process(listen, store=store) as second:
            await second.says("another sidecar owns it")
            assert "listening" not in second.log
            for number in range(2, 6):
                answer = await caller.record.Append(asking.append(f"w{number}"))
                assert answer.ordinal == number
            assert (tmp_path / "s.sock").stat().st_ino == inode
            first.send(end)
            code = await first.ended()
            gone = time.monotonic()
            assert code == (0 if end is signal.SIGTERM else -signal.SIGKILL)
            await second.says("the store is open")
            assert time.monotonic() - gone < HANDOVER_S
            async with calling(second.target) as other:
                history = (await other.render.History(asking.history(), wait_for_ready=True)).history
                assert history.shown == 5
            second.send(signal.SIGTERM)
            assert await second.ended() == 0
    assert not (tmp_path / "s.sock").exists()


async def test_ending_the_waiting_one_harms_nobody(tmp_path: Path) -> None:
    """A second process that is ended while it waits exits with 0 and leaves the first one's socket alone."""
    listen, store = f"unix://{tmp_path}/s.sock", tmp_path / "store.db"
    async with started(settings(tmp_path)) as app:
        async with process(listen, store=store) as second:
            await second.says("another sidecar owns it")
            second.send(signal.SIGTERM)
            assert await second.ended() == 0
        assert (tmp_path / "s.sock").exists()
        async with calling(app.address.target) as caller:
            assert (await caller.record.Append(asking.append())).ordinal == 1


async def test_waiting_one_takes_no_part_of_the_first(tmp_path: Path) -> None:
    """While it waits for the socket a sidecar leaves the store free: two waiters cannot split socket and store."""
    held = Lock(tmp_path / "s.sock.lock")
    assert held.acquire()
    app = App(Launch(settings(tmp_path)))
    starting = asyncio.create_task(app.startup())
    await asyncio.wait({starting}, timeout=0.6)
    assert not starting.done()
    async with asyncio.timeout(PATIENCE_S), open_store(tmp_path / "store.db"):
        pass
    held.release()
    await asyncio.wait_for(starting, PATIENCE_S)
    await asyncio.wait_for(app.opened(), PATIENCE_S)
    await app.shutdown()


async def test_second_on_another_socket_answers_while_it_waits_for_the_store(tmp_path: Path) -> None:
    """A sidecar whose store is held binds its own socket, says why, and serves once the store is free."""
    other = settings(tmp_path, listen=f"unix://{tmp_path}/other.sock")
    async with started(settings(tmp_path)) as first:
        second = App(Launch(other))
        await asyncio.wait_for(second.startup(), PATIENCE_S)
        async with calling(second.address.target) as caller, calling(first.address.target) as owner:
            await owner.record.Append(asking.append())
            assert (await refused(caller.render.History(asking.history()))).reason == "STORE_UNAVAILABLE"
    await asyncio.wait_for(second.opened(), PATIENCE_S)
    async with calling(second.address.target) as caller:
        assert (await caller.render.History(asking.history())).history.shown == 1
    await second.shutdown()


async def test_port_is_not_shared(tmp_path: Path) -> None:
    """A second sidecar does not share a port: it waits, and gets the port when the first is gone."""
    (tmp_path / "b").mkdir()
    async with started(settings(tmp_path, listen="127.0.0.1:0")) as first:
        port = first.address.port
        second = App(Launch(settings(tmp_path / "b", listen=f"127.0.0.1:{port}")))
        starting = asyncio.create_task(second.startup())
        await asyncio.wait({starting}, timeout=0.5)
        assert not starting.done()
    await asyncio.wait_for(starting, PATIENCE_S)
    await asyncio.wait_for(second.opened(), PATIENCE_S)
    async with calling(f"127.0.0.1:{port}") as caller:
        answer = await caller.record.Append(asking.append(), wait_for_ready=True)
        assert answer.disposition == record_pb2.DISPOSITION_RECORDED
    await second.shutdown()


@pytest.mark.parametrize("mask", [0o000, 0o077])
async def test_socket_is_for_owner_and_group(tmp_path: Path, mask: int) -> None:
    """The socket has mode 0660 whatever the umask, which is the same afterwards."""
    before = os.umask(mask)
    try:
        async with started(settings(tmp_path)):
            status = (tmp_path / "s.sock").stat()
            assert stat.S_ISSOCK(status.st_mode)
            assert stat.S_IMODE(status.st_mode) == 0o660
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
