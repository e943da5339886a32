"""Asking the owner of a store over its admin socket."""

import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from sidecar.domain.errors import Code, LedgerError
from sidecar.server.admin import admin_path, reachable
from sidecar.store.progress import Progress, Report

#: Seconds that the owner may take to accept; its answer may take as long as the work does.
_CONNECT_S: Final = 5.0


class NoOwner(Exception):
    """Nobody answers for the store."""


def ask(store: Path, command: str, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """What the owner answers. Raises `NoOwner`, or the `LedgerError` that it answered with.

    Ctrl-C hangs up, and that ends what was asked for.
    """
    with _connected(store) as connection:
        request = json.dumps({"command": command, "arguments": dict(arguments)})
        connection.sendall(request.encode() + b"\n")
        with connection.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "progress" in message:
                    report(Progress(**message["progress"]))
                elif "error" in message:
                    raise LedgerError(Code(message["error"]["code"]), message["error"]["message"])
                else:
                    answer: dict[str, Any] = message["answer"]
                    return answer
    raise LedgerError(Code.STORE_UNAVAILABLE, "the sidecar ended before it had answered; ask again")


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
    connection.settimeout(None)
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
