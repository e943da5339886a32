"""What an observer of calls is told is what the wire says, whichever way a call ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from turnledger.v1 import render_pb2

from sidecar.domain.errors import Code, LedgerError
from sidecar.server.guard import Guard, Rpc
from sidecar.server.status import STATUSES
from tests.support.patience import eventually

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@dataclass
class Watched:
    """One call, as the observer heard of it."""

    method: str
    request: int
    ends: list[tuple[str, str, int]] = field(default_factory=list)
    trace_id: str | None = TRACE

    def end(self, code: str, reason: str = "", response: int = 0) -> None:
        self.ends.append((code, reason, response))


@dataclass
class Observer:
    """Remembers every call."""

    calls: list[Watched] = field(default_factory=list)

    def begin(
        self, method: str, request: int, metadata: Callable[[], Iterable[tuple[str, str | bytes]] | None]
    ) -> Watched:
        assert metadata is not None
        watched = Watched(method, request)
        self.calls.append(watched)
        return watched


Serve = Callable[[render_pb2.HistoryRequest], Awaitable[Message]]


@asynccontextmanager
async def _serving(
    serve: Serve, *, room: int = 10, deadline_s: float = 5.0, refusal: LedgerError | None = None
) -> AsyncIterator[tuple[Observer, "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"]]:
    observer = Observer()
    guard = Guard(room, observer, refusal)
    handler = guard.handler(Rpc("Render/History", render_pb2.HistoryRequest, serve, deadline_s))
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("turnledger.v1.Render", {"History": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/turnledger.v1.Render/History", None, None
        )
        yield observer, method
    await server.stop(0)


async def _code(call: Awaitable[bytes]) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    code: grpc.StatusCode = refused.value.code()
    return code


async def _answers(_: render_pb2.HistoryRequest) -> Message:
    return render_pb2.HistoryResponse(already_recorded=True)


async def test_an_answer_is_ok_with_its_sizes() -> None:
    """A call that is answered ends once, OK, with the bytes of both."""
    async with _serving(_answers) as (observer, call):
        answer = await call(render_pb2.HistoryRequest(agent_handle="a").SerializeToString())
        assert observer.calls == [Watched("turnledger.v1.Render/History", 3, [("OK", "", len(answer))])]


@pytest.mark.parametrize("code", Code)
async def test_each_row_of_the_table(code: Code) -> None:
    """Whatever reason a call fails for, status and reason are told as they went over the wire."""

    async def fails(_: render_pb2.HistoryRequest) -> Message:
        raise LedgerError(code, "why")

    async with _serving(fails) as (observer, call):
        on_the_wire = await _code(call(b""))
        assert on_the_wire is STATUSES[code].code
        assert observer.calls[0].ends == [(on_the_wire.name, code.value, 0)]


async def test_a_bug_is_internal_in_the_callers_trace() -> None:
    """An exception nobody foresaw is INTERNAL, and its message has the trace that the call is in."""

    async def breaks(_: render_pb2.HistoryRequest) -> Message:
        raise ZeroDivisionError("SECRETWORD")

    async with _serving(breaks) as (observer, call):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(b"")
        assert refused.value.code() is grpc.StatusCode.INTERNAL
        assert TRACE in str(refused.value.details())
        assert "SECRETWORD" not in str(refused.value)
        assert observer.calls[0].ends == [("INTERNAL", "INTERNAL", 0)]


async def test_bytes_that_do_not_parse() -> None:
    """What is no message is INVALID_ARGUMENT to both."""
    async with _serving(_answers) as (observer, call):
        assert await _code(call(b"\xff\xff\xff")) is grpc.StatusCode.INVALID_ARGUMENT
        assert observer.calls[0].ends == [("INVALID_ARGUMENT", "INVALID", 0)]


async def test_a_refusal_and_a_shed_call() -> None:
    """A process that refuses all, and one without room, tell of their calls as of any other."""
    async with _serving(_answers, refusal=LedgerError(Code.CONFIG_INVALID, "x")) as (observer, call):
        assert await _code(call(b"")) is grpc.StatusCode.FAILED_PRECONDITION
        assert observer.calls[0].ends == [("FAILED_PRECONDITION", "CONFIG_INVALID", 0)]
    async with _serving(_answers, room=0) as (observer, call):
        assert await _code(call(b"")) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert observer.calls[0].ends == [("RESOURCE_EXHAUSTED", "OVERLOADED", 0)]


async def _hangs(_: render_pb2.HistoryRequest) -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def test_deadlines_and_callers_that_go() -> None:
    """The sidecar's own deadline, the caller's, and a caller that went are told apart, each once."""
    async with _serving(_hangs, deadline_s=0.05) as (observer, call):
        assert await _code(call(b"")) is grpc.StatusCode.DEADLINE_EXCEEDED
        assert observer.calls[0].ends == [("DEADLINE_EXCEEDED", "DEADLINE", 0)]
    async with _serving(_hangs) as (observer, call):
        assert await _code(call(b"", timeout=0.1)) is grpc.StatusCode.DEADLINE_EXCEEDED
        going = call(b"")
        await asyncio.sleep(0.1)
        going.cancel()

        async def both() -> bool:
            return [len(watched.ends) for watched in observer.calls] == [1, 1]

        await eventually(both)
        assert [watched.ends[0][0] for watched in observer.calls] == ["DEADLINE_EXCEEDED", "CANCELLED"]


class _Late:
    """The context of a call whose deadline has passed."""

    def invocation_metadata(self) -> tuple[()]:
        return ()

    def time_remaining(self) -> float:
        return -0.001

    async def abort(self, code: grpc.StatusCode, details: str, trailing: object) -> None:
        raise RuntimeError(code, details, trailing)


async def test_a_call_that_comes_too_late_is_not_done() -> None:
    """What arrives after its deadline is not carried out: its caller has gone on by itself."""
    done: list[int] = []

    async def notes(_: render_pb2.HistoryRequest) -> Message:
        done.append(1)
        return render_pb2.HistoryResponse()

    observer = Observer()
    handler: Any = Guard(10, observer).handler(Rpc("Render/History", render_pb2.HistoryRequest, notes, 5.0))
    with pytest.raises(RuntimeError):
        await handler.unary_unary(b"", _Late())
    assert (done, observer.calls[0].ends) == ([], [("DEADLINE_EXCEEDED", "DEADLINE", 0)])
