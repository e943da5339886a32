"""What stands around every RPC: room, parsing, sizes, a deadline, and the one place where a bug is caught."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, NoReturn, Protocol, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from turnledger.limits import MESSAGE_BYTES

from sidecar.domain.errors import Code, LedgerError, Violation, place_of
from sidecar.server.memory import GIANT_BYTES, Memory
from sidecar.server.status import STATUSES, to_status

Request = TypeVar("Request", bound=Message)

#: A call's metadata, for whoever asks.
Metadata = Callable[[], Iterable[tuple[str, str | bytes]] | None]

if TYPE_CHECKING:  # generic in the type stubs alone
    Context = grpc.aio.ServicerContext[bytes, bytes]
    Handler = grpc.RpcMethodHandler[bytes, bytes]

_log = logging.getLogger("turnledger.server")

#: Bytes of requests in work at once. Each takes several times its size while it is decoded, kept and sealed; the limit
#: makes that a bound for the process, and lets four of the largest messages in.
_IN_WORK_BYTES: Final = 4 * MESSAGE_BYTES

#: gRPC may cancel a call some milliseconds before its deadline has passed by our clock, in seconds.
_EARLY_S = 0.05


@dataclass(frozen=True, slots=True)
class Rpc(Generic[Request]):
    """One RPC. `deadline_s` (seconds) holds where the caller sets none."""

    name: str
    request: type[Request]
    serve: Callable[[Request], Awaitable[Message]]
    deadline_s: float


class Call(Protocol):
    """One call that is being watched."""

    @property
    def trace_id(self) -> str | None:
        """The trace that it is in, where there is one."""
        ...

    def end(self, code: str, reason: str = "", response: int = 0) -> None:
        """It ends with this status on the wire, and with a reason unless that is OK; `response` is bytes."""
        ...


class RpcObserver(Protocol):
    """Watches calls. In the task that serves each."""

    def begin(self, method: str, request: int, metadata: Metadata) -> Call:
        """A call has come, of so many bytes."""
        ...


class Guard:
    """Runs RPCs, so many and so many bytes of them at once: what comes beyond is shed with a reason, to come again."""

    def __init__(self, concurrent_calls: int, observer: RpcObserver, refusal: LedgerError | None = None) -> None:
        """With a `refusal` every call is answered by it."""
        self._room = concurrent_calls
        self._in_work = 0
        self._memory = Memory()
        self._observer = observer
        self._refusal = refusal

    def handler(self, rpc: Rpc[Request]) -> "Handler":
        """The RPC as a handler of raw bytes: gRPC would answer bytes that do not parse with the parser's own text.

        What the observer is told is what the wire says, whichever way the call ends.
        """
        method = f"turnledger.v1.{rpc.name}"

        async def call(data: bytes, context: "Context") -> bytes:
            watched = self._observer.begin(method, len(data), context.invocation_metadata)
            try:
                answer = await self._serve(rpc, data, context)
            except LedgerError as error:
                # Its traceback holds this frame, and so the request: some megabytes until the collector comes by.
                failure = error.with_traceback(None)
            except asyncio.CancelledError:
                code = _cancelled(context)
                watched.end(code, code)
                raise
            except Exception as bug:  # noqa: BLE001  the one catch-all: its text must not reach a caller
                failure = _masked(rpc.name, bug, watched.trace_id)
            else:
                watched.end("OK", response=len(answer))
                return answer
            finally:
                if len(data) >= GIANT_BYTES:
                    self._memory.give_back_soon()
            watched.end(STATUSES[failure.code].code.name, failure.code.value)
            return await _abort(context, failure)

        return grpc.unary_unary_rpc_method_handler(call)

    async def _serve(self, rpc: Rpc[Request], data: bytes, context: "Context") -> bytes:
        if self._room == 0 or self._in_work + len(data) > _IN_WORK_BYTES:
            raise LedgerError(Code.OVERLOADED, "too many calls at once; retry")
        self._room -= 1
        self._in_work += len(data)
        try:
            return await self._answer(rpc, data, context)
        finally:
            self._room += 1
            self._in_work -= len(data)

    async def _answer(self, rpc: Rpc[Request], data: bytes, context: "Context") -> bytes:
        if self._refusal is not None:
            raise LedgerError(self._refusal.code, self._refusal.message)
        request = _parse(rpc, data)
        left = context.time_remaining()
        if left is not None and left <= 0:  # its caller has gone on by itself: what is done now, nobody expects
            raise LedgerError(Code.DEADLINE, f"{rpc.name} came after its deadline")
        deadline = rpc.deadline_s if left is None else None
        try:
            async with asyncio.timeout(deadline) as timer:
                answer = await rpc.serve(request)
        except TimeoutError as error:
            if not timer.expired():
                raise
            raise LedgerError(Code.DEADLINE, f"{rpc.name} took longer than {rpc.deadline_s} s") from error
        return _within_limit(answer.SerializeToString(), "the answer")


def _parse(rpc: Rpc[Request], data: bytes) -> Request:
    _within_limit(data, "the request")
    request = rpc.request()
    try:
        request.ParseFromString(data)
    except DecodeError as error:
        name = request.DESCRIPTOR.full_name
        raise LedgerError(
            Code.INVALID, f"the request's bytes are no {name}", [Violation("request", f"must be a {name}")]
        ) from error
    return request


def _within_limit(data: bytes, what: str) -> bytes:
    if len(data) > MESSAGE_BYTES:
        raise LedgerError(Code.TOO_LARGE, f"{what} has {len(data)} bytes, and a message has at most {MESSAGE_BYTES}")
    return data


def _cancelled(context: "Context") -> str:
    """A call whose own deadline passed is cancelled as one whose caller went; the wire tells them apart."""
    left = context.time_remaining()
    return "DEADLINE_EXCEEDED" if left is not None and left <= _EARLY_S else "CANCELLED"


def _masked(name: str, bug: Exception, trace_id: str | None) -> LedgerError:
    """A fixed message with an id. The log has the id and the place, never the exception's text: it may quote a turn."""
    trace_id = trace_id or uuid.uuid4().hex
    _log.error("bug in %s: %s, trace id %s, at %s", name, type(bug).__name__, trace_id, place_of(bug))
    return LedgerError(Code.INTERNAL, f"internal error, trace id {trace_id}; please report it")


async def _abort(context: "Context", error: LedgerError) -> NoReturn:
    status = to_status(error)
    await context.abort(status.code, status.details, status.trailing_metadata)
