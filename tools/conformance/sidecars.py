"""What stands at the other end in a case: real sidecars, relays that lose answers, scripts, silence, and nobody."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf import json_format
from google.protobuf.message import Message
from turnledger.rich_status import failure_of
from turnledger.v1 import record_pb2, render_pb2

from tests.client.scripted_sidecar import (
    Behaviour,
    Script,
    fails,
    hangs,
    history,
    says,
    serving,
    silent_listener,
    slowly,
)
from tests.support.patience import eventually
from tests.support.running import Caller, Process, calling, free_port, process
from tools.conformance.texts import expanded

_ANSWERS: Final[dict[str, type[Message]]] = {
    "History": render_pb2.HistoryResponse,
    "UserMessage": render_pb2.UserMessageResponse,
    "Append": record_pb2.AppendResponse,
    "Fit": record_pb2.FitResponse,
    "Settle": record_pb2.SettleResponse,
    "Forget": record_pb2.ForgetResponse,
}

_READ: Final = render_pb2.HistoryRequest(agent_handle="probe", conversation_key="probe").SerializeToString()


async def read_of(caller: Caller) -> str:
    """The reason why a read fails; empty for a sidecar whose store is open."""
    try:
        await caller.send("Render/History", _READ)
    except grpc.aio.AioRpcError as error:
        return failure_of(error.code(), "", error.trailing_metadata()).reason
    return ""


class Sidecar:
    """The other end of one case. `requests` are those that a script or a relay saw, by method."""

    def __init__(self, target: str, requests: dict[str, list[Message]] | None = None) -> None:
        self.target = target
        self._requests = requests

    def seen(self, method: str) -> dict[str, Any]:
        """How many requests came to the method, and each as proto3 JSON. Raises TypeError where nobody looks."""
        if self._requests is None:
            raise TypeError("only a scripted and a lossy sidecar see requests")
        requests = self._requests.get(method, [])
        said = [json_format.MessageToDict(request, preserving_proto_field_name=True) for request in requests]
        return {"count": len(requests), "requests": said}

    async def kill(self) -> None:
        """End the process, as a crash would."""
        raise TypeError("only a case's own real sidecar can be killed")

    async def start(self) -> None:
        """Start it again, on the same address and store."""
        raise TypeError("only a case's own real sidecar can be started")


class RealSidecar(Sidecar):
    """A process, as an operator starts it, that can be killed and started again."""

    def __init__(self, target: str, folder: Path, session: dict[str, Any]) -> None:
        super().__init__(target)
        self._folder = folder
        (folder / "settings.yaml").write_text(json.dumps({"turn_engine": {"conversation_session": session}}))
        self._running = AsyncExitStack()

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        health = {"TURNLEDGER_HEALTH": f"127.0.0.1:{free_port()}"}
        one = await self._running.enter_async_context(
            process(
                self.target,
                "--config",
                str(self._folder / "settings.yaml"),
                store=self._folder / "store.db",
                variables=health,
            )
        )
        await self._answers(one)

    async def kill(self) -> None:
        """End the process, as a crash would."""
        await self._running.aclose()

    async def _answers(self, one: Process) -> None:
        async with calling(one.target) as caller:

            async def reads() -> bool:
                return not await read_of(caller)

            await eventually(reads)


@asynccontextmanager
async def real(folder: Path, session: dict[str, Any] | None = None, target: str = "") -> AsyncIterator[RealSidecar]:
    """A real sidecar whose files are in `folder`, until the block ends; on a socket there unless `target` says else."""
    one = RealSidecar(target or f"unix://{folder}/s", folder, session or {})
    try:
        await one.start()
        yield one
    finally:
        await one.kill()


@asynccontextmanager
async def opened(kind: Any, folder: Path, shared: Sidecar) -> AsyncIterator[Sidecar]:
    """The other end that a case names, its files in `folder`. `shared` is the real one that cases have in common."""
    target = f"unix://{folder}/s"
    match kind:
        case "real":
            yield shared
        case {"real": session}:
            async with real(folder, session) as own:
                yield own
        case {"tcp": session}:
            async with real(folder, session, f"127.0.0.1:{free_port()}") as own:
                yield own
        case {"lossy": losses}:
            async with calling(shared.target.replace("unix://", "unix:")) as caller:
                relay = Script(**{name: _relayed(name, caller, losses.get(name, 0)) for name in _ANSWERS})
                async with serving(relay, target):
                    yield Sidecar(target, relay.seen)
        case "dead":
            yield Sidecar(target)
        case "hung":
            async with silent_listener(f"{folder}/s"):
                yield Sidecar(target)
        case {"script": script}:
            played = Script(**{name: [_behaviour(name, each) for each in given] for name, given in script.items()})
            async with serving(played, target):
                yield Sidecar(target, played.seen)
        case _:
            raise ValueError(f"no such sidecar: {kind!r}")


_SERVICES: Final = dict.fromkeys(("History", "UserMessage"), "Render") | dict.fromkeys(
    ("Append", "Fit", "Settle", "Forget"), "Record"
)


def _relayed(method: str, caller: Caller, losses: int) -> Behaviour:
    """Hands the request on, and the answer back, but for the first `losses` answers."""
    left = iter(range(losses))
    lost = fails("UNAVAILABLE")

    async def behave(request: Any, context: Any) -> Message | bytes:
        answer: bytes = await caller.send(f"{_SERVICES[method]}/{method}", request.SerializeToString())
        return answer if next(left, None) is None else await lost(request, context)

    return behave


def _behaviour(method: str, given: dict[str, Any]) -> Behaviour:
    inner = _plain(method, given)
    return slowly(inner, given["after"]) if "after" in given else inner


def _plain(method: str, given: dict[str, Any]) -> Behaviour:
    match given:
        case {"status": code}:
            return fails(
                code,
                given.get("reason", ""),
                retry_seconds=given.get("retry_after"),
                fields=dict.fromkeys(given.get("fields", ()), "a rule"),
                domain=given.get("domain", "turnledger"),
            )
        case {"history": text}:
            state = render_pb2.HistoryState.Value(f"HISTORY_STATE_{given.get('state', 'present').upper()}")
            return says(render_pb2.HistoryResponse(history=history(expanded(text), state)))
        case {"answer": answer}:
            return says(json_format.ParseDict(answer, _ANSWERS[method]()))
        case {"bytes": data}:
            return says(bytes.fromhex(data))
        case {"hang": True}:
            return hangs
    raise ValueError(f"no such behaviour: {given!r}")
