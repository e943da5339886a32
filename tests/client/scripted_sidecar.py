"""A small real gRPC server whose answers a test scripts, in the test's own event loop and on a real socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

import grpc
import grpc.aio
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status
from turnledger import Phase
from turnledger.compose import Parts, compose
from turnledger.v1 import entry_pb2, record_pb2, render_pb2

#: Opens a ledger of one shell or the other: `async with opened(target, ...) as ledger`.
Open = Callable[..., Any]

Behaviour = Callable[[Any, grpc.aio.ServicerContext[Any, Any]], Awaitable[Message | bytes]]

BLOCK = (
    "## Earlier in this conversation\n\nThe contract.\n\n### 2026-01-01T00:00:00Z (turn a1b2c3d4)\n> Grüße 🙂\r\n> x"
)


#: A turn's keys, a round's ask, and its message without and with the block.
KEYS: dict[str, Any] = {
    "agent_handle": "support",
    "conversation_key": "jira:POC-7",
    "turn_id": "run-00000001",
    "work_key": "0123456789abcdef",
}
ASK: dict[str, Any] = {"phase": Phase.EXECUTE, "task": "Do it."}
BEFORE = "## Task\n\nDo it."
AFTER = f"{BLOCK}\n\n## Task\n\nDo it."


def history(text: str = BLOCK, state: int = render_pb2.HISTORY_STATE_PRESENT) -> render_pb2.History:
    """A history whose sizes and digest go with its text."""
    digest = sha256(text.encode()).hexdigest()
    return render_pb2.History(state=state, text=text, digest=digest, bytes=len(text.encode()), shown=1 if text else 0)  # type: ignore[arg-type]


def says(message: Message | bytes) -> Behaviour:
    """Answers with `message`; bytes go onto the wire as they are."""

    async def behave(_request: Any, _context: Any) -> Message | bytes:
        return message

    return behave


def slowly(behaviour: Behaviour, seconds: float) -> Behaviour:
    """As `behaviour`, after a wait."""

    async def behave(request: Any, context: Any) -> Message | bytes:
        await asyncio.sleep(seconds)
        return await behaviour(request, context)

    return behave


def fails(
    code: str,
    reason: str = "",
    *,
    retry_seconds: float | None = None,
    fields: dict[str, str] | None = None,
    domain: str = "turnledger",
) -> Behaviour:
    """Answers with a status and google.rpc's own details, packed by grpcio-status."""
    details: list[Message] = []
    if reason:
        details.append(error_details_pb2.ErrorInfo(reason=reason, domain=domain))
    if retry_seconds is not None:
        nanos = round(retry_seconds * 1e9)
        delay = duration_pb2.Duration(seconds=nanos // 10**9, nanos=nanos % 10**9)
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    if fields:
        violations = [
            error_details_pb2.BadRequest.FieldViolation(field=field, description=rule) for field, rule in fields.items()
        ]
        details.append(error_details_pb2.BadRequest(field_violations=violations))
    packed = [any_pb2.Any() for _ in details]
    for box, detail in zip(packed, details, strict=True):
        box.Pack(detail)
    number = code_pb2.Code.Value(code)
    status = rpc_status.to_status(status_pb2.Status(code=number, message="a fixed message", details=packed))

    async def behave(_request: Any, context: Any) -> Message:
        await context.abort_with_status(status)
        raise AssertionError

    return behave


async def hangs(_request: Any, _context: Any) -> Message:
    """Takes the call and never answers."""
    await asyncio.Event().wait()
    raise AssertionError


async def composes(request: Any, _context: Any) -> Message:
    """UserMessage as the sidecar does it."""
    block = request.history.text if request.phase == render_pb2.PHASE_EXECUTE else ""
    parts = Parts(context=request.context, history=block, task=request.task, prior_work=request.prior_work)
    return render_pb2.UserMessageResponse(text=compose(parts))


def recorded(ordinal: int = 1) -> record_pb2.AppendResponse:
    """An Append that wrote."""
    return record_pb2.AppendResponse(
        disposition=record_pb2.DISPOSITION_RECORDED, entry_id=f"entry-{ordinal}", ordinal=ordinal
    )


def order(name: str = "o-1", text: str = "a long text", *, kind: int = entry_pb2.ORDER_KIND_NOTE) -> entry_pb2.Order:
    """An order as a sidecar issues it."""
    return entry_pb2.Order(
        order_id=name,
        kind=kind,  # type: ignore[arg-type]  # one that nobody knows, too
        text=text,
        limit_bytes=400,
        instructions="Shorter.\n",
        closing="\nShorter.",
    )


def with_orders(*orders: entry_pb2.Order) -> Behaviour:
    """An Append that wrote, and names the orders."""
    answer = recorded()
    answer.orders.extend(orders)
    return says(answer)


def judges(verdict: str = "ACCEPTED", over: int = 0) -> Behaviour:
    """A Fit that gives every rewrite this verdict."""
    number = record_pb2.Verdict.Value(f"VERDICT_{verdict}")

    async def behave(request: Any, _context: Any) -> Message:
        results = [
            record_pb2.FitResult(order_id=fit.order_id, verdict=number, over_by_bytes=over) for fit in request.fits
        ]
        return record_pb2.FitResponse(results=results)

    return behave


_REQUESTS: dict[str, type[Message]] = {
    "/turnledger.v1.Render/History": render_pb2.HistoryRequest,
    "/turnledger.v1.Render/UserMessage": render_pb2.UserMessageRequest,
    "/turnledger.v1.Record/Append": record_pb2.AppendRequest,
    "/turnledger.v1.Record/Fit": record_pb2.FitRequest,
    "/turnledger.v1.Record/Settle": record_pb2.SettleRequest,
    "/turnledger.v1.Record/Forget": record_pb2.ForgetRequest,
}


class Script(grpc.GenericRpcHandler):
    """What each method does: its behaviours in turn, the last one from then on. `seen` holds each request it got."""

    def __init__(self, **behaviours: Behaviour | list[Behaviour]) -> None:
        defaults: dict[str, Behaviour | list[Behaviour]] = {
            "History": says(render_pb2.HistoryResponse(history=history())),
            "UserMessage": composes,
            "Append": says(recorded()),
            "Fit": judges(),
            "Settle": says(record_pb2.SettleResponse(outcome=record_pb2.SETTLE_OUTCOME_SETTLED, entry_id="entry-1")),
            "Forget": says(record_pb2.ForgetResponse(forgotten=3, erasure=record_pb2.ERASURE_COMPLETE)),
        }
        chosen = {**defaults, **behaviours}
        self.behaviours = {name: list(one) if isinstance(one, list) else [one] for name, one in chosen.items()}
        self.seen: dict[str, list[Any]] = {name: [] for name in self.behaviours}

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        path = details.method
        name = path.rpartition("/")[2]

        async def handle(request: Any, context: Any) -> Message | bytes:
            self.seen[name].append(request)
            queue = self.behaviours[name]
            return await (queue.pop(0) if len(queue) > 1 else queue[0])(request, context)

        return grpc.unary_unary_rpc_method_handler(
            handle,
            request_deserializer=_REQUESTS[path].FromString,
            response_serializer=lambda answer: answer if isinstance(answer, bytes) else answer.SerializeToString(),
        )


@asynccontextmanager
async def serving(script: Script, target: str) -> AsyncIterator[grpc.aio.Server]:
    """A server that plays `script` at `target`."""
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((script,))
    server.add_insecure_port(target)
    await server.start()
    try:
        yield server
    finally:
        await server.stop(0)


@asynccontextmanager
async def silent_listener(path: str) -> AsyncIterator[None]:
    """A Unix socket that accepts every connection and never says a word."""
    writers: list[asyncio.StreamWriter] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while await reader.read(65536):
            pass

    server = await asyncio.start_unix_server(accept, path)
    try:
        yield
    finally:
        for writer in writers:
            writer.close()
        server.close()


@asynccontextmanager
async def babbling_listener(path: str) -> AsyncIterator[None]:
    """A Unix socket that answers every connection with text that is no HTTP/2."""

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.7\r\n" * 8)
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(accept, path)
    try:
        yield
    finally:
        server.close()
