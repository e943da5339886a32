"""An engine as a process of its own, to post to, to watch and to see die: for the play and for the tests."""

import asyncio
import http.client
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from examples.engine.engine import LISTENING

_PATIENCE_S: Final = 20.0
_LINE_BYTES: Final = 2**25


class EngineProcess:
    """A running engine. `lines` is what it printed."""

    def __init__(self, inner: asyncio.subprocess.Process, folder: Path, tell: Callable[[str], None]) -> None:
        self._inner = inner
        self._tell = tell
        self._port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read())
        self.folder = folder
        self.lines: list[str] = []

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        """Post JSON, or bytes as they are; answers status and JSON. Underscores of header names become dashes."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self._ask("POST", path, data, named)

    async def state(self) -> dict[str, Any]:
        """What waits, runs, is suspended, unsent and over."""
        _, answer = await self._ask("GET", "/", None, {})
        return dict(answer)

    async def idle(self) -> dict[str, Any]:
        """Wait until nothing waits nor runs; answers the state."""
        async with asyncio.timeout(_PATIENCE_S):
            while (state := await self.state())["waiting"] or state["running"]:  # noqa: ASYNC110  another process's state
                await asyncio.sleep(0.05)
        return state

    async def listens(self) -> int:
        """Wait until it listens; answers the port."""
        return await asyncio.wait_for(asyncio.shield(self._port), _PATIENCE_S)

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal it, and wait for its end."""
        if self._inner.returncode is None:
            self._inner.send_signal(number)
        return await self.ended()

    async def ended(self) -> int:
        """Wait for its end; answers its exit code."""
        code = await asyncio.wait_for(self._inner.wait(), _PATIENCE_S)
        await self._reading
        return code

    async def _ask(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, Any]:
        return await asyncio.to_thread(_ask, await self.listens(), method, path, data, headers)

    async def _read(self) -> None:
        assert self._inner.stdout is not None  # noqa: S101  it was made with a pipe
        async for line in self._inner.stdout:
            text = line.decode().rstrip("\n")
            self.lines.append(text)
            self._tell(text)
            if text.startswith(LISTENING):
                self._port.set_result(int(text.partition(",")[0].rpartition(":")[2]))
        if not self._port.done():
            self._port.set_exception(RuntimeError("the engine ended before it listened:\n" + "\n".join(self.lines)))
            self._port.exception()


@asynccontextmanager
async def engine_process(
    ledger: str, folder: Path, *options: str, tell: Callable[[str], None] = lambda _: None
) -> AsyncIterator[EngineProcess]:
    """Start an engine on a free port, and end it if it lives."""
    command = ["-m", "examples.engine", "--ledger", ledger, "--folder", str(folder), "--port", "0", *options]
    inner = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=_LINE_BYTES,
    )
    engine = EngineProcess(inner, folder, tell)
    try:
        yield engine
    finally:
        await engine.stop(signal.SIGKILL)


def _ask(port: int, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    try:
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()
