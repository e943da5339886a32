"""Taking the places where the process listens: never by force, and never giving up."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from sidecar.config.listen import Address
from sidecar.store.lock import Lock

_log = logging.getLogger("turnledger.app")

#: Seconds between looks at a socket or a port that another process holds.
_POLL_S: Final = 0.2


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
    """Bind, as often as it takes; `bind` raises `RuntimeError` where the place is taken. Answers the place it got."""
    said = False
    while True:
        if not (address.port and await asyncio.to_thread(_answers, address)):
            try:
                return await bind(address)
            except RuntimeError:
                pass  # said below
        if not said:
            _log.error("cannot listen on %s: something else holds it; trying again until it goes", address.target)
            said = True
        await asyncio.sleep(_POLL_S)


def _answers(address: Address) -> bool:
    """Whether somebody listens on the port. gRPC would find out too, and complain on stderr at each try."""
    host = {"0.0.0.0": "127.0.0.1", "[::]": "::1"}.get(address.host, address.host.strip("[]"))  # noqa: S104  compared
    try:
        with socket.create_connection((host, address.port), timeout=_POLL_S):
            return True
    except OSError:
        return False


def _obstacle(path: Path, lock: Lock) -> str:
    """Take the lock of the socket; answers what keeps that from happening, empty once it is done."""
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        return "" if lock.acquire() else "another sidecar owns it"
    except OSError as error:
        return f"its folder cannot be used ({error.strerror})"
