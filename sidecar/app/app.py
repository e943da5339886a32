"""The sidecar as one object: `startup`, `main_loop`, `shutdown`."""

import asyncio
import logging
import os
import signal
import socket
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidecar.config.listen import Address, parse_listen
from sidecar.config.settings import DEFAULT_LISTEN, Settings
from sidecar.domain.errors import LedgerError
from sidecar.server.guard import Guard
from sidecar.server.server import Server
from sidecar.server.servicers import RecordServicer, RenderServicer
from sidecar.services.record import Record
from sidecar.services.render import Render
from sidecar.store.lock import Lock
from sidecar.store.store import Store
from sidecar.telemetry.prompt_size import prompt_size_reporter
from sidecar.telemetry.setup import Telemetry

_log = logging.getLogger("turnledger.app")

#: Seconds that calls under way get to finish after SIGTERM; well within Kubernetes' default of 30.
GRACE_S: Final = 10.0

#: Seconds between looks at a socket or a port that another process holds.
_ADDRESS_POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Launch:
    """What the process was started with. `refusal` is what was wrong with its configuration: every call is told."""

    settings: Settings
    refusal: LedgerError | None = None
    vfs: str | None = None

    @property
    def address(self) -> Address:
        """Where to listen: the default socket where the configured address is part of what is wrong."""
        try:
            return parse_listen(self.settings.sidecar.listen)
        except LedgerError:
            return parse_listen(DEFAULT_LISTEN)


class App:
    """One sidecar. Whatever the state of store and configuration, it binds and answers."""

    def __init__(self, launch: Launch) -> None:
        """Wire everything; touch nothing. Needs a running event loop."""
        self._launch = launch
        settings = launch.settings
        session = settings.turn_engine.conversation_session
        self._telemetry = Telemetry()
        self._store = Store(Path(settings.sidecar.store), clock=lambda: int(time.time()), vfs=launch.vfs)
        record = Record(self._store, lambda: session, lambda: str(uuid.uuid4()))
        render = Render(self._store, lambda: session, prompt_size_reporter(self._telemetry.events))
        guard = Guard(settings.sidecar.limits.concurrent_calls, launch.refusal)
        self._server = Server(RecordServicer(record), RenderServicer(render), guard)
        self._socket_lock: Lock | None = None
        self._stopping = asyncio.Event()
        self.address = launch.address

    async def startup(self) -> None:
        """Bind first, so that callers get answers; the store opens meanwhile."""
        if self._launch.refusal is not None:
            _log.error(
                "the configuration is wrong, and every call will say so; correct it and restart: %s",
                self._launch.refusal.message,
            )
        if self.address.socket is not None:
            await self._own_socket(self.address.socket)
        await self._listen()
        if self._launch.refusal is None:
            self._store.start()

    async def main_loop(self) -> None:
        """Serve until `stop` is called."""
        await self._stopping.wait()

    def stop(self) -> None:
        """End `main_loop`."""
        self._stopping.set()

    async def shutdown(self) -> None:
        """Stop accepting, finish what runs, close the store, flush telemetry."""
        _log.info("stopping")
        await self._server.stop(GRACE_S)
        await self._store.close()
        if self._socket_lock is not None:
            self._socket_lock.release()
        await self._telemetry.close()
        _log.info("stopped")

    async def run(self) -> None:
        """The three phases, in order, and the last one whatever happens. SIGTERM and SIGINT stop it from the start."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        starting = asyncio.ensure_future(self.startup())
        stopping = asyncio.ensure_future(self.main_loop())
        try:
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await stopping
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await self.shutdown()

    async def opened(self) -> None:
        """Wait until the store is open. Raises the `LedgerError` that keeps it closed for good."""
        await self._store.opened()

    async def _own_socket(self, path: Path) -> None:
        """gRPC takes over a live socket in silence, and unlinks it on stop: only the holder of the lock may bind."""
        lock = Lock(path.with_name(path.name + ".lock"))
        said = ""
        while obstacle := _obstacle(path, lock):
            if obstacle != said:
                _log.error("cannot listen on %s: %s; trying again until that ends", path, obstacle)
                said = obstacle
            await asyncio.sleep(_ADDRESS_POLL_S)
        self._socket_lock = lock

    async def _try_listen(self) -> bool:
        if self.address.port and await asyncio.to_thread(_answers, self.address):
            return False
        try:
            self.address = await self._server.start(self.address)
        except RuntimeError:
            return False
        return True

    async def _listen(self) -> None:
        said = False
        while not await self._try_listen():
            if not said:
                _log.error(
                    "cannot listen on %s: something else holds it; trying again until it goes", self.address.target
                )
                said = True
            await asyncio.sleep(_ADDRESS_POLL_S)
        _log.info("listening on %s, process %d", self.address.target, os.getpid())


def _answers(address: Address) -> bool:
    """Whether somebody listens on the port. gRPC would find out too, and complain on stderr at each try."""
    if address.socket is not None:
        return False
    try:
        with socket.create_connection((address.host.strip("[]"), address.port), timeout=_ADDRESS_POLL_S):
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
