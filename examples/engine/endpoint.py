"""The HTTP endpoint, on loopback: webhooks, a person's approvals, and the word that the chat works again.

Take from it: a webhook is answered when it is on disk, not when its turn is over, or the vendor's patience ends first
and everything comes twice. A body that makes no sense gets a clear no, or is taken as an event of no conversation. A
real endpoint checks the vendor's signature before anything else, and leaves out what its own seat posted.
"""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

#: GitHub sends no more than 25 MB, the others less.
MAX_BODY_BYTES: Final = 25_000_000
#: Seconds that a caller may take to send its request, and the engine to answer.
PATIENCE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """What a route is asked: its path in parts, the headers, and the body as JSON."""

    path: tuple[str, ...]
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """The request makes no sense; the caller is told why."""

    status: HTTPStatus
    why: str


#: Answers a request, on the engine's event loop; it may raise Refused.
Route = Callable[[Request], Awaitable[dict[str, Any]]]


@contextmanager
def listening(port: int, route: Route) -> Iterator[int]:
    """Serve on 127.0.0.1 in threads of its own, and route on the running loop. Yields the port, 0 being any free one.

    Raises SystemExit if the port cannot be had.
    """
    loop = asyncio.get_running_loop()

    class Handler(_Handler):
        def routed(self, request: Request) -> dict[str, Any]:
            return asyncio.run_coroutine_threadsafe(_awaited(route(request)), loop).result(PATIENCE_S)

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise SystemExit(f"port {port} of 127.0.0.1 cannot be had: {error.strerror}; --port names another") from error
    with server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE_S

    def routed(self, request: Request) -> dict[str, Any]:
        raise NotImplementedError

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        try:
            self._answer(self._body())
        except Refused as refused:
            self._send(refused.status, {"error": refused.why})

    def _answer(self, body: dict[str, Any]) -> None:
        path = tuple(part for part in self.path.partition("?")[0].split("/") if part)
        try:
            answer = self.routed(Request((self.command, *path), dict(self.headers.items()), body))
        except Refused as refused:
            self._send(refused.status, {"error": refused.why})
        except TimeoutError:
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, {"error": "the engine is busy, send it again"})
        else:
            self._send(HTTPStatus.ACCEPTED if self.command == "POST" else HTTPStatus.OK, answer)

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "say the body's size in Content-Length")
        if len(length) > len(str(MAX_BODY_BYTES)) or int(length) > MAX_BODY_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has {MAX_BODY_BYTES} bytes at most")
        return _parsed(self.rfile.read(int(length)))

    def _send(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        data = json.dumps(answer, indent=2).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name in the base class
        """The engine tells what happens."""


async def _awaited(answer: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    return await answer


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "the body is no JSON that anybody could read") from error
    if not isinstance(body, dict):
        raise Refused(HTTPStatus.BAD_REQUEST, "the body is JSON, and no object")
    return body
