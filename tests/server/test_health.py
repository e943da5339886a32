"""The health port: the process is alive whatever else is wrong, and what is wrong has a name and a reason."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import grpc
import pytest
from click.testing import CliRunner, Result
from grpc_health.v1 import health_pb2

from sidecar.app.app import App
from sidecar.cli.exits import Exit
from sidecar.cli.main import main
from sidecar.domain.errors import Code, LedgerError
from sidecar.services.health import Health, State
from tests.support.faulty_disk import faulty_disk
from tests.support.patience import eventually
from tests.support.running import free_port, settings, started

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@dataclass(frozen=True, slots=True)
class Prober:
    """Somebody who asks the health port."""

    target: str

    async def check(self, name: str) -> tuple[int, str]:
        """A component's status, and why."""
        async with grpc.aio.insecure_channel(self.target) as channel:
            ask = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                health_pb2.HealthCheckRequest.SerializeToString,
                health_pb2.HealthCheckResponse.FromString,
            )
            call = ask(health_pb2.HealthCheckRequest(service=name))
            answer = await call
            trailing = dict(await call.trailing_metadata())
            return answer.status, _text(trailing.get("turnledger-detail-bin", b""))


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


@asynccontextmanager
async def _probed(app: App) -> AsyncIterator[Prober]:
    async def bound() -> bool:
        return app.health.port != 0

    await eventually(bound)
    yield Prober(app.health.target)


async def test_a_well_sidecar(tmp_path: Path) -> None:
    """Process and components are SERVING."""
    async with started(settings(tmp_path)) as app, _probed(app) as prober:
        for name in ("", "liveness", "store.readable", "store.writable", "disk", "configuration"):
            assert await prober.check(name) == (SERVING, ""), name


async def test_an_unknown_component_is_not_found(tmp_path: Path) -> None:
    """A name that there is not is NOT_FOUND, as the protocol has it, and no other service is served."""
    async with started(settings(tmp_path)) as app, _probed(app) as prober:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await prober.check("store.edible")
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        async with grpc.aio.insecure_channel(prober.target) as channel:
            for path in ("/turnledger.v1.Render/History", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"):
                with pytest.raises(grpc.aio.AioRpcError) as unserved:
                    await _raw(channel, path)
                assert unserved.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def _raw(channel: grpc.aio.Channel, path: str) -> bytes:
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path, None, None)
    return await method(b"")


async def test_a_store_whose_file_is_gone_flips_and_the_process_lives(tmp_path: Path) -> None:
    """With the file deleted both store components say so within two seconds, and liveness does not move."""
    async with started(settings(tmp_path)) as app, _probed(app) as prober:
        assert (await prober.check("store.readable"))[0] == SERVING
        (tmp_path / "store.db").unlink()

        async def flipped() -> bool:
            return (await prober.check("store.readable"))[0] == NOT_SERVING

        await eventually(flipped)
        status, detail = await prober.check("store.writable")
        assert (status, "gone or was replaced" in detail) == (NOT_SERVING, True)
        assert await prober.check("liveness") == (SERVING, "")


async def test_a_disk_that_fails_flips_the_writer_and_comes_back(tmp_path: Path) -> None:
    """While writes fail the store is readable and not writable; once they work again it is both, without a restart."""
    with faulty_disk() as disk:
        async with started(settings(tmp_path), vfs=disk.name) as app, _probed(app) as prober:
            assert (await prober.check("store.writable"))[0] == SERVING
            disk.fail("write", apsw.SQLITE_FULL, ending="-wal")

            async def unwell() -> bool:
                return (await prober.check("store.writable"))[0] == NOT_SERVING

            await eventually(unwell)
            assert (await prober.check("store.readable"))[0] == SERVING
            disk.heal()

            async def well() -> bool:
                return (await prober.check("store.writable"))[0] == SERVING

            await eventually(well)


async def test_a_wrong_configuration_is_a_component(tmp_path: Path) -> None:
    """A process that was started with wrong settings lives, and its `configuration` says what is wrong."""
    refusal = LedgerError(Code.CONFIG_INVALID, "sidecar.limits: unknown key")
    async with started(settings(tmp_path), refusal=refusal, opened=False) as app, _probed(app) as prober:
        assert await prober.check("liveness") == (SERVING, "")
        assert await prober.check("configuration") == (NOT_SERVING, "CONFIG_INVALID: sidecar.limits: unknown key")


async def test_watchers_hear_each_change(tmp_path: Path) -> None:
    """A watcher gets the status at once and again when it changes."""
    async with (
        started(settings(tmp_path)) as app,
        _probed(app) as prober,
        grpc.aio.insecure_channel(prober.target) as channel,
    ):
        watch: Any = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            health_pb2.HealthCheckRequest.SerializeToString,
            health_pb2.HealthCheckResponse.FromString,
        )
        watching = watch(health_pb2.HealthCheckRequest(service="store.readable"))
        assert (await asyncio.wait_for(watching.read(), 5)).status == SERVING
        (tmp_path / "store.db").unlink()
        assert (await asyncio.wait_for(watching.read(), 10)).status == NOT_SERVING
        watching.cancel()


async def _probe(*arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, main, ["probe", *arguments])


async def test_the_probe_command(tmp_path: Path) -> None:
    """It prints each component, exits with 0, 1 or 4, and says why something is not well."""
    async with started(settings(tmp_path)) as app, _probed(app) as prober:
        target = prober.target.replace("ipv4:", "")
        well = await _probe("--health", target)
        assert (well.exit_code, well.stdout.count(" well\n")) == (Exit.DONE, 5)
        (tmp_path / "store.db").unlink()
        await asyncio.sleep(1.1)
        unwell = await _probe("--health", target, "--json")
        assert unwell.exit_code == Exit.NO
        details = {each["component"]: each["detail"] for each in json.loads(unwell.stdout)["components"]}
        assert "gone or was replaced" in details["store.readable"]
        assert (await _probe("--health", target, "--component", "liveness")).exit_code == Exit.DONE
        assert (await _probe("--health", target, "--component", "x")).exit_code == Exit.USAGE
    nobody = await _probe("--health", f"127.0.0.1:{free_port()}", "--timeout", "1")
    assert (nobody.exit_code, "no sidecar answers on" in nobody.stderr) == (Exit.UNREACHABLE, True)


async def test_many_probes_cost_one_check() -> None:
    """However many ask at once, a component is tried once, and its answer is good for a second."""
    now, tries = [0.0], [0]

    async def check() -> None:
        tries[0] += 1
        await asyncio.sleep(0.01)

    health = Health({"store": check}, lambda: now[0])
    assert await asyncio.gather(*(health.state("store") for _ in range(50))) == [State(well=True)] * 50
    await health.state("store")
    assert tries == [1]
    now[0] = 1.5
    await health.state("store")
    assert tries == [2]


async def test_a_check_that_hangs_is_not_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hung disk makes its component unwell within the patience, and is not tried a second time meanwhile."""
    monkeypatch.setattr("sidecar.services.health._PATIENCE_S", 0.05)
    tries, now = [0], [0.0]

    async def hangs() -> None:
        tries[0] += 1
        await asyncio.Event().wait()

    health = Health({"store": hangs}, lambda: now[0])
    for _ in range(3):
        state = await health.state("store")
        assert (state.well, "did not answer" in state.detail) == (False, True)
        now[0] += 2
    assert tries == [1]
    await health.close()


async def test_an_answer_that_came_late_is_not_kept_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a check that hung said in the end is nobody's answer minutes after: the component is tried anew."""
    monkeypatch.setattr("sidecar.services.health._PATIENCE_S", 0.05)
    now, go, trouble = [0.0], asyncio.Event(), [LedgerError(Code.STORE_IO, "the disk failed")]

    async def check() -> None:
        await go.wait()
        if trouble:
            raise trouble.pop()

    health = Health({"store": check}, lambda: now[0])
    assert "did not answer" in (await health.state("store")).detail
    go.set()
    await asyncio.sleep(0.01)
    now[0] = 300.0
    assert await health.state("store") == State(well=True)


async def test_watchers_keep_no_probe_out(tmp_path: Path) -> None:
    """More watchers than there are places are told so, and a liveness probe is answered all the same."""
    async with (
        started(settings(tmp_path)) as app,
        _probed(app) as prober,
        grpc.aio.insecure_channel(prober.target) as channel,
    ):
        watch: Any = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            health_pb2.HealthCheckRequest.SerializeToString,
            health_pb2.HealthCheckResponse.FromString,
        )
        watching = [watch(health_pb2.HealthCheckRequest(service="liveness")) for _ in range(70)]
        heard = await asyncio.gather(*(each.read() for each in watching), return_exceptions=True)
        refused = [each for each in heard if isinstance(each, grpc.aio.AioRpcError)]
        assert (len(refused), {each.code() for each in refused}) == (38, {grpc.StatusCode.RESOURCE_EXHAUSTED})
        assert await prober.check("liveness") == (SERVING, "")
        for each in watching:
            each.cancel()

        async def a_place_is_free() -> bool:
            again = watch(health_pb2.HealthCheckRequest(service="liveness"))
            try:
                status: int = (await again.read()).status
                return status == SERVING
            except grpc.aio.AioRpcError:
                return False
            finally:
                again.cancel()

        await eventually(a_place_is_free)
