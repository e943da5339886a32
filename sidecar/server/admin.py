"""The admin socket: lines of JSON for the commands, on this machine and for this user alone.

A request is one line, `{"command": "stats", "arguments": {}}`. Then come any number of `{"progress": ...}`, an
`{"alive": true}` each `ALIVE_S` seconds, at last one `{"answer": ...}` or `{"error": {"code": ..., "message": ...}}`,
and the end. Who hangs up ends what was asked for.
"""

import asyncio
import json
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec

from sidecar.domain.errors import Code, LedgerError
from sidecar.services.administration import Administration
from sidecar.store.progress import Progress

#: Bytes of one request: a seat, a conversation and a work key, with room.
_LINE_BYTES: Final = 16 * 1024

#: Connections at once; the next one is told to come back.
_CONNECTIONS: Final = 8

#: Seconds between signs of life while a command is at work, and what somebody gets to say what it wants.
ALIVE_S: Final = 5.0

#: What the kernel takes as a socket's path, in bytes.
_PATH_BYTES: Final = 107


def admin_path(store: Path) -> Path:
    """Where the owner of a store listens."""
    return store.with_name(store.name + ".admin")


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """The socket's path as the kernel takes it: a long one goes by way of its folder. Raises `OSError`."""
    if len(os.fsencode(path)) <= _PATH_BYTES or sys.platform != "linux":
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class AdminServer:
    """Serves the commands while it runs. Only the holder of the store's lock starts one."""

    def __init__(self, path: Path, administration: Administration) -> None:
        self._path = path
        self._administration = administration
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen, in the place of whatever a process that was killed has left. Raises `OSError`."""
        self._path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            with reachable(self._path) as name:
                self._server = await asyncio.start_unix_server(self._accept, name, limit=_LINE_BYTES)
        finally:
            os.umask(before)

    async def stop(self) -> None:
        """Stop listening, and end what runs: a backup leaves nothing behind."""
        if self._server is None:
            return
        self._server.close()
        self._path.unlink(missing_ok=True)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or not _is_same_user(writer):
            writer.close()
            return
        crowded = len(self._connections) >= _CONNECTIONS
        self._connections.add(task)
        try:
            await self._serve(reader, writer, crowded=crowded)
        except (ConnectionError, asyncio.CancelledError):
            pass  # whoever asked went, or the sidecar stops
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, crowded: bool) -> None:
        try:
            async with asyncio.timeout(ALIVE_S):
                line = await reader.readline()
        except TimeoutError:  # whoever connects has something to ask
            return
        except ValueError:  # longer than any request
            await _send(writer, _error(LedgerError(Code.INVALID, f"a request has at most {_LINE_BYTES} bytes")))
            return
        if crowded:
            await _send(writer, _error(LedgerError(Code.OVERLOADED, "too many commands at once; wait for one to end")))
            return
        asking = asyncio.ensure_future(self._answer(line, writer))
        gone = asyncio.ensure_future(_until_gone(reader))
        try:
            while not (asking.done() or gone.done()):
                _write(writer, {"alive": True})
                await asyncio.wait({asking, gone}, timeout=ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                await _send(writer, asking.result())
        finally:
            asking.cancel()
            gone.cancel()
            await asyncio.gather(asking, gone, return_exceptions=True)

    async def _answer(self, line: bytes, writer: asyncio.StreamWriter) -> dict[str, Any]:
        loop = asyncio.get_running_loop()

        def report(progress: Progress) -> None:
            loop.call_soon_threadsafe(_write, writer, {"progress": asdict(progress)})

        try:
            request = _request(line)
            return {"answer": await self._administration.run(request.command, request.arguments, report)}
        except LedgerError as error:
            return _error(error)


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: str
    arguments: dict[str, Any] = {}


def _request(line: bytes) -> _Request:
    try:
        return msgspec.json.decode(line, type=_Request)
    except (ValueError, RecursionError) as error:
        raise LedgerError(
            Code.INVALID,
            "a request is a line of JSON: a command, and arguments that are an object; keys and paths are valid UTF-8",
        ) from error


async def _until_gone(reader: asyncio.StreamReader) -> None:
    """What is said after the request is nobody's business, and is not kept."""
    while await reader.read(_LINE_BYTES):
        pass


def _error(error: LedgerError) -> dict[str, Any]:
    return {"error": {"code": error.code.value, "message": error.message}}


def _write(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    """Leave out what a slow reader would pile up: there is newer progress to come."""
    if not writer.is_closing() and writer.transport.get_write_buffer_size() < _LINE_BYTES:
        writer.write(json.dumps(message).encode() + b"\n")


async def _send(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")
    await writer.drain()


def _is_same_user(writer: asyncio.StreamWriter) -> bool:
    """The mode of the socket keeps others out already; a folder that was mounted with another owner must not matter."""
    if sys.platform != "linux":
        return True
    peer = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", peer)
    return uid in (0, os.geteuid())
