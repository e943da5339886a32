"""Taking the places where the process listens: never by force, and never giving up."""

import asyncio
import errno
import itertools
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from sidecar.config.listen import Address
from sidecar.store.lock import Lock

_log = logging.getLogger("turnledger.app")

#: Seconds between looks at a socket or a port that another process holds.
_POLL_S: Final = 0.2

_WILDCARDS: Final = ("0.0.0.0", "::")  # noqa: S104  compared


async def own_socket(path: Path) -> Lock:
    """gRPC takes over a live socket in silence, and unlinks it on stop: only the holder of the lock may bind."""
    lock = Lock(path.with_name(path.name + ".lock"))
    said = ""
    while obstacle := _obstacle(path, lock):
        if obstacle != said:
            _log.error("cannot listen on %s: %s; trying again until that ends", path, obstacle)
            said = obstacle
        await asyncio.sleep(_POLL_S)
    return lock


async def bind_until_free(address: Address, bind: Callable[[Address], Awaitable[Address]]) -> Address:
    """Bind, as often as it takes; `bind` raises `RuntimeError` where it cannot. Answers the place it got.

    The place is looked at first, since gRPC says nothing of why, and complains on stderr at each try.
    """
    said = ""
    while True:
        obstacle = await asyncio.to_thread(_not_free, address)
        if not obstacle:
            try:
                return await bind(address)
            except RuntimeError:
                obstacle = "something else came first"
        if obstacle != said:
            _log.error("cannot listen on %s: %s; trying again until that ends", address.target, obstacle)
            said = obstacle
        await asyncio.sleep(_POLL_S)


def _not_free(address: Address) -> str:
    """Why nobody can listen there now, empty if somebody can."""
    if address.socket is not None:
        return (
            "what is there is no socket" if os.path.lexists(address.socket) and not address.socket.is_socket() else ""
        )
    try:
        named = [socket.getaddrinfo(host, address.port, type=socket.SOCK_STREAM) for host in _hosts(address)]
    except OSError as error:  # a name that nobody knows
        return str(error.strerror)
    outcomes = [_try_to_bind(family, where) for family, _, _, _, where in itertools.chain(*named)]
    errors = [outcome for outcome in outcomes if outcome is not None]
    taken = [error for error in errors if error.errno == errno.EADDRINUSE]
    if taken or len(errors) == len(outcomes):
        return str((taken or errors)[0].strerror)
    return ""


def _hosts(address: Address) -> tuple[str, ...]:
    """Either wildcard means every interface, with whatever families the machine has."""
    return _WILDCARDS if address.host.strip("[]") in _WILDCARDS else (address.host.strip("[]"),)


def _try_to_bind(family: int, where: tuple[Any, ...]) -> OSError | None:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gRPC does: ended connections hold nothing
            trial.bind(where)
    except OSError as error:
        return error
    return None


def _obstacle(path: Path, lock: Lock) -> str:
    """Take the lock of the socket; answers what keeps that from happening, empty once it is done."""
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        return "" if lock.acquire() else "another sidecar owns it"
    except OSError as error:
        return f"its folder cannot be used ({error.strerror})"
