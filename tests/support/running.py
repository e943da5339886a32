"""A real sidecar: inside the test's process with everything at hand, or as a process of its own to be killed."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio
from turnledger.limits import TRANSPORT_BYTES
from turnledger.v1.record_pb2_grpc import RecordStub
from turnledger.v1.render_pb2_grpc import RenderStub

from sidecar.app.app import App, Launch
from sidecar.config.settings import ConversationSession, Limits, Settings, Sidecar, TurnEngine
from sidecar.domain.errors import LedgerError
from tests.support.patience import PATIENCE_S

if TYPE_CHECKING:
    from turnledger.v1.record_pb2_grpc import RecordAsyncStub
    from turnledger.v1.render_pb2_grpc import RenderAsyncStub

_CHANNEL_OPTIONS: Final = (
    ("grpc.max_receive_message_length", TRANSPORT_BYTES),
    ("grpc.max_send_message_length", TRANSPORT_BYTES),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5_000),  # what one try may take, too: on a busy machine more than a moment
    ("grpc.max_reconnect_backoff_ms", 200),
)


@dataclass(frozen=True, slots=True)
class Caller:
    """An engine's end of the wire."""

    channel: grpc.aio.Channel
    record: "RecordAsyncStub"
    render: "RenderAsyncStub"

    async def send(self, method: str, data: bytes) -> bytes:
        """Send raw bytes to a method such as `Record/Append`."""
        return await self.call(f"/turnledger.v1.{method}", data)

    async def call(self, path: str, data: bytes) -> bytes:
        """Send raw bytes to any path at all."""
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(path, None, None)
        return await method(data)


@asynccontextmanager
async def calling(target: str) -> AsyncIterator[Caller]:
    """A caller with a connection of its own."""
    async with grpc.aio.insecure_channel(target, options=_CHANNEL_OPTIONS) as channel:
        yield Caller(channel, RecordStub(channel), RenderStub(channel))


def settings(
    folder: Path,
    *,
    listen: str | None = None,
    store: Path | None = None,
    session: ConversationSession | None = None,
    concurrent_calls: int = 512,
) -> Settings:
    """Settings of a sidecar whose socket and store are in the folder, unless told otherwise."""
    return Settings(
        turn_engine=TurnEngine(conversation_session=session or ConversationSession()),
        sidecar=Sidecar(
            listen=listen or f"unix://{folder}/s.sock",
            health="127.0.0.1:0",
            store=str(store or folder / "store.db"),
            limits=Limits(concurrent_calls=concurrent_calls),
        ),
    )


@asynccontextmanager
async def started(
    chosen: Settings, *, refusal: LedgerError | None = None, vfs: str | None = None, opened: bool = True
) -> AsyncIterator[App]:
    """A sidecar in this process: listening, and with its store open unless `opened` is false."""
    async with started_from(Launch(chosen, refusal, vfs)) as app:
        if opened:
            await asyncio.wait_for(app.opened(), PATIENCE_S)
        yield app


@asynccontextmanager
async def started_from(launch: Launch) -> AsyncIterator[App]:
    """A sidecar in this process, as the command would launch it: listening, its store in whatever state."""
    app = App(launch)
    try:
        await asyncio.wait_for(app.startup(), PATIENCE_S)
        yield app
    finally:
        await app.shutdown()


@asynccontextmanager
async def running(chosen: Settings, **how: Any) -> AsyncIterator[Caller]:
    """A sidecar in this process, and a caller of it."""
    async with started(chosen, **how) as app, calling(app.address.target) as caller:
        yield caller


class Process:
    """`python -m sidecar serve` as a process. What it logs is at hand; it is ended by its own id."""

    def __init__(self, inner: asyncio.subprocess.Process, target: str) -> None:
        self._inner = inner
        self._news = asyncio.Condition()
        self._silent = False
        self._reading = asyncio.create_task(self._read())
        self.target = target
        self.log = ""

    @property
    def pid(self) -> int:
        return self._inner.pid

    async def says(self, text: str) -> None:
        """Wait until it has logged the text."""
        async with self._news:
            heard = self._news.wait_for(lambda: text in self.log or self._silent)
            await asyncio.wait_for(heard, PATIENCE_S)
        assert text in self.log, self.log

    def send(self, number: signal.Signals) -> None:
        """Signal it, if it lives."""
        if self._inner.returncode is None:
            self._inner.send_signal(number)

    async def ended(self) -> int:
        """Wait for its end; answers its exit code."""
        code = await asyncio.wait_for(self._inner.wait(), PATIENCE_S)
        await self._reading
        return code

    async def _read(self) -> None:
        assert self._inner.stderr is not None
        async for line in self._inner.stderr:
            async with self._news:
                self.log += line.decode()
                self._news.notify_all()
        async with self._news:
            self._silent = True
            self._news.notify_all()


@asynccontextmanager
async def process(
    listen: str, *arguments: str, store: Path | None = None, variables: Mapping[str, str] | None = None
) -> AsyncIterator[Process]:
    """A sidecar process, killed at the end if it lives. `variables` are added to its environment."""
    options = [*arguments, *(["--store", str(store)] if store else []), *(["--listen", listen] if listen else [])]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environment = {**inherited, "TURNLEDGER_HEALTH": "127.0.0.1:0"}
    inner = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "sidecar",
        "serve",
        *options,
        env={**environment, **(variables or {}), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    one = Process(inner, listen.replace("unix://", "unix:"))
    try:
        yield one
    finally:
        one.send(signal.SIGKILL)
        await one.ended()


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
