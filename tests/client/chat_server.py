"""Scripted models behind real HTTP: a small server on loopback that speaks OpenAI's chat completions."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

#: What a model gets of a request: the prompt, and the number of the call from 1.
Model = Callable[[str, int], "str | Answer"]

_FENCED: Final = re.compile(r"^(===== text \w+ =====)\n(.*)\n\1$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Answer:
    """An answer other than a plain text: its status, and its body as it goes onto the wire."""

    status: int = 200
    body: bytes = b""
    #: Ends the connection without an answer.
    crashes: bool = False


@dataclass
class Chat:
    """What a server saw. `gate` lets its hanging models go."""

    url: str = ""
    prompts: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    most: int = 0
    running: int = 0
    gate: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)


def fenced(prompt: str) -> str:
    """The text between the fences of a prompt."""
    found = _FENCED.search(prompt)
    assert found is not None, "the prompt has no fence"
    return found[2]


def completion(text: str, *, finish: str = "stop") -> bytes:
    """A chat completion that says the text, 70 and 7 tokens in usage."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 70, "completion_tokens": 7, "total_tokens": 77}
    body = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return json.dumps(body).encode()


def refusal(status: int, code: str) -> Answer:
    """An error as OpenAI's own endpoint says it."""
    return Answer(status, json.dumps({"error": {"message": "refused", "type": code, "code": code}}).encode())


@contextmanager
def chatting(model: Model) -> Iterator[Chat]:
    """A server whose one model answers as scripted."""
    chat = Chat()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with chat.lock:
                chat.bodies.append(body)
                chat.prompts.append(body["messages"][-1]["content"])
                chat.keys.append(self.headers["Authorization"])
                chat.running += 1
                chat.most = max(chat.most, chat.running)
                number = len(chat.bodies)
            try:
                self._answer(model(chat.prompts[number - 1], number))
            finally:
                with chat.lock:
                    chat.running -= 1

        def _answer(self, said: str | Answer) -> None:
            answer = Answer(200, completion(said)) if isinstance(said, str) else said
            self.close_connection = answer.crashes
            if answer.crashes:
                return
            try:
                self.send_response(answer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)
            except OSError:  # the client gave up
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    chat.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield chat
    finally:
        chat.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()
