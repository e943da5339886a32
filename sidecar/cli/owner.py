"""Asking the owner of a store over its admin socket."""

import json
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sidecar.domain.errors import Code, LedgerError
from sidecar.server.admin import ALIVE_S, admin_path, reachable
from sidecar.store.progress import Progress, Report

#: Seconds that the owner may take to accept, and may be silent; its answer may take as long as the work does.
_CONNECT_S: Final = 5.0
_SILENCE_S: Final = 3 * ALIVE_S

_HUNG_UP: Final = "the sidecar hung up before it had answered; look at its log, and ask again"


class NoOwner(Exception):
    """Nobody answers for the store."""


def ask(store: Path, command: str, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """What the owner answers. Raises `NoOwner`, or the `LedgerError` that it answered with.

    Ctrl-C hangs up, and that ends what was asked for.
    """
    with _connected(store) as connection, _hanging_up():
        request = json.dumps({"command": command, "arguments": dict(arguments)})
        connection.sendall(request.encode() + b"\n")
        with connection.makefile("rb") as lines:
            for message in map(json.loads, _patiently(lines)):
                if "error" in message:
                    raise LedgerError(Code(message["error"]["code"]), message["error"]["message"])
                if "answer" in message:
                    answer: dict[str, Any] = message["answer"]
                    return answer
                if "progress" in message:
                    report(Progress(**message["progress"]))
    raise LedgerError(Code.STORE_UNAVAILABLE, _HUNG_UP)


@contextmanager
def _hanging_up() -> Iterator[None]:
    """A sidecar that ends in the middle is no bug of the command's."""
    try:
        yield
    except ConnectionError as error:
        raise LedgerError(Code.STORE_UNAVAILABLE, _HUNG_UP) from error


def _patiently(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, as long as there are signs of life: a process that is stopped or hangs must hang nobody else."""
    try:
        yield from lines
    except TimeoutError as error:
        raise LedgerError(
            Code.STORE_UNAVAILABLE,
            f"the sidecar has not answered for {_SILENCE_S:.0f} s; look at its process and its log",
        ) from error


def _connected(store: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_CONNECT_S)
    try:
        with reachable(admin_path(store)) as name:
            connection.connect(name)
    except (FileNotFoundError, ConnectionRefusedError) as error:  # none, or one that a killed process left
        connection.close()
        raise NoOwner from error
    except OSError as error:
        connection.close()
        raise LedgerError(
            Code.STORE_UNAVAILABLE,
            f"{admin_path(store)} cannot be reached ({error.strerror}); run this as the sidecar's user",
        ) from error
    connection.settimeout(_SILENCE_S)
    return connection


def ask_or(
    store: Path,
    command: str,
    arguments: Mapping[str, Any],
    report: Report,
    alone: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """Ask the owner; where there is none, do it `alone`."""
    try:
        return ask(store, command, arguments, report)
    except NoOwner:
        return alone()
