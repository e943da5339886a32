"""It always binds and answers: whatever lies where socket and store should be."""

import asyncio
import signal
import socket
from pathlib import Path

import grpc
import pytest

from sidecar.app.app import App, Launch
from tests.support import asking
from tests.support.patience import PATIENCE_S, eventually, served
from tests.support.refusal import refused
from tests.support.running import Caller, calling, process, running, settings, started
from tests.support.stores import beside


async def _serves(app: App) -> None:
    async with calling(app.address.target) as caller:
        assert (await caller.record.Append(asking.append())).ordinal == 1


async def test_missing_folders_are_made(tmp_path: Path) -> None:
    """The folders of socket and store are made where they are missing."""
    chosen = settings(tmp_path, listen=f"unix://{tmp_path}/run/a/s.sock", store=tmp_path / "lib" / "b" / "store.db")
    async with started(chosen) as app:
        await _serves(app)


async def test_stale_socket_is_taken_over(tmp_path: Path) -> None:
    """A socket file that nobody listens on any more is no hindrance."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "s.sock"))
    async with started(settings(tmp_path)) as app:
        await _serves(app)


async def test_killed_ones_socket_is_taken_over(tmp_path: Path) -> None:
    """After a kill the next process binds the same socket and has the same turns."""
    listen, store = f"unix://{tmp_path}/s.sock", tmp_path / "store.db"
    for number in (1, 2):
        async with process(listen, store=store) as one, calling(one.target) as caller:
            await one.says("the store is open")
            assert (await caller.record.Append(asking.append(f"w{number}"))).ordinal == number
            one.send(signal.SIGKILL)
            await one.ended()
            assert (tmp_path / "s.sock").exists()


async def test_waits_for_a_place_that_something_else_holds(tmp_path: Path) -> None:
    """A file that is no socket is not removed: the sidecar waits, and binds once it is gone."""
    (tmp_path / "s.sock").write_text("somebody's")
    app = App(Launch(settings(tmp_path)))
    starting = asyncio.create_task(app.startup())
    await asyncio.wait({starting}, timeout=0.5)
    assert not starting.done()
    assert (tmp_path / "s.sock").read_text() == "somebody's"
    (tmp_path / "s.sock").unlink()
    await asyncio.wait_for(starting, PATIENCE_S)
    await asyncio.wait_for(app.opened(), PATIENCE_S)
    await _serves(app)
    await app.shutdown()


async def test_waits_for_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A socket folder that cannot be made does not end the process: it waits, and binds once it can."""
    (tmp_path / "run").touch()
    listen = f"unix://{tmp_path}/run/s.sock"
    async with process(listen, store=tmp_path / "store.db") as one:
        await one.says("cannot")
        (tmp_path / "run").unlink()
        await one.says("the store is open")
        async with calling(one.target) as caller:
            assert (await caller.record.Append(asking.append(), wait_for_ready=True)).ordinal == 1
        one.send(signal.SIGTERM)
        assert await one.ended() == 0


@pytest.mark.parametrize(
    ("host", "why"),
    [("127.0.0.1", "Address already in use"), ("192.0.2.1", "Cannot assign requested address")],
)
async def test_says_once_why_a_port_is_not_had(tmp_path: Path, host: str, why: str) -> None:
    """A health port that is taken, or an address of another machine, is said once, in words; calls are answered."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        health = f"{host}:{other.getsockname()[1]}"
        async with process(
            f"unix://{tmp_path}/s.sock", store=tmp_path / "store.db", variables={"TURNLEDGER_HEALTH": health}
        ) as one:
            await one.says(f"cannot listen on {health}: {why}")
            await one.says("the store is open")
            async with calling(one.target) as caller:
                assert (await caller.record.Append(asking.append(), wait_for_ready=True)).ordinal == 1
            await asyncio.sleep(0.5)
            one.send(signal.SIGTERM)
            assert await one.ended() == 0
    assert all(line.startswith("{") for line in one.log.splitlines())
    assert one.log.count('"message": "cannot listen on') == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "[::]"])  # noqa: S104  dialled by nobody
async def test_a_port_is_had_once_it_is_free(tmp_path: Path, host: str) -> None:
    """Whatever names this machine is bound; on a port that somebody has, as soon as they have gone."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        health = f"{host}:{other.getsockname()[1]}"
        one = process(f"unix://{tmp_path}/s.sock", store=tmp_path / "store.db", variables={"TURNLEDGER_HEALTH": health})
        async with one as waiting:
            await waiting.says(f"cannot listen on {health}: Address already in use")
            other.close()
            await waiting.says(f"health on {health}")


async def test_ends_well_while_it_waits_for_a_folder(tmp_path: Path) -> None:
    """SIGTERM ends a process that could never bind, with 0."""
    (tmp_path / "run").touch()
    async with process(f"unix://{tmp_path}/run/s.sock", store=tmp_path / "store.db") as one:
        await one.says("cannot")
        one.send(signal.SIGTERM)
        assert await one.ended() == 0


@pytest.mark.parametrize("obstacle", ["folder is a file", "store is a folder", "lock is a folder"])
async def test_store_that_cannot_be_used_is_answered(tmp_path: Path, obstacle: str) -> None:
    """A store whose place is unusable is UNAVAILABLE for each call, opens once it is usable, and stops cleanly."""
    path = tmp_path / "lib" / "store.db"
    if obstacle == "folder is a file":
        blocking = path.parent
        blocking.touch()
    else:
        path.parent.mkdir()
        blocking = path.with_name("store.db.lock") if obstacle == "lock is a folder" else path
        blocking.mkdir()
    async with running(settings(tmp_path, store=path), opened=False) as caller:
        await eventually(lambda: _is_past_opening(caller))
        refusal = await refused(caller.render.History(asking.history()))
        assert refusal.code is grpc.StatusCode.UNAVAILABLE
        assert refusal.reason in {"STORE_UNAVAILABLE", "STORE_IO"}
        assert refusal.retry_after_s is not None
        if blocking.is_dir():
            blocking.rmdir()
        else:
            blocking.unlink()
        assert (await served(lambda: caller.record.Append(asking.append()))).ordinal == 1


@pytest.mark.parametrize("state", ["locked", "newer", "corrupt"])
async def test_process_binds_and_ends_well_whatever_the_store_is(tmp_path: Path, state: str) -> None:
    """With a store that is held, newer or corrupt the process binds, answers with the reason, and ends with 0."""
    path, listen = tmp_path / "store.db", f"unix://{tmp_path}/p.sock"
    async with started(settings(tmp_path)) as owner:
        await _serves(owner)
        if state == "locked":
            await _answers(listen, path, "STORE_UNAVAILABLE", "another sidecar owns the store")
            return
    if state == "newer":
        with beside(path) as db:
            db.execute("INSERT INTO schema_migrations VALUES (999, 'later', 'x', 1)")
        await _answers(listen, path, "STORE_NEWER", "schema 999")
    else:
        path.write_bytes(b"garbage " * 999)
        await _answers(listen, path, "STORE_CORRUPT", "damaged")


async def _is_past_opening(caller: Caller) -> bool:
    return "being opened" not in (await refused(caller.render.History(asking.history()))).message


async def _answers(listen: str, store: Path, reason: str, telling: str) -> None:
    async with process(listen, store=store) as one:
        await one.says("the store is not open")
        async with calling(one.target) as caller:
            refusal = await refused(caller.render.History(asking.history(), wait_for_ready=True))
            assert (refusal.reason, telling in refusal.message) == (reason, True)
            assert telling in one.log
        one.send(signal.SIGTERM)
        assert await one.ended() == 0


@pytest.mark.parametrize("name", ["a%20b.sock", "a b.sock", "a#b.sock", "a?b.sock", "\u00e9.sock"])
async def test_socket_is_where_it_was_asked_for(tmp_path: Path, name: str) -> None:
    """Characters that mean something in a URI mean nothing in a socket's path."""
    async with started(settings(tmp_path, listen=f"unix://{tmp_path}/{name}")) as app:
        assert (tmp_path / name).is_socket()
        await _serves(app)
