"""The sidecar as one object: `startup`, `main_loop`, `shutdown`."""

import asyncio
import logging
import os
import signal
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from sidecar.app.places import bind_until_free, own_socket
from sidecar.config.effective import Effective
from sidecar.config.listen import Address, parse_health, parse_listen
from sidecar.config.live import Outcome, Reload
from sidecar.config.reloader import Reloader
from sidecar.config.settings import DEFAULT_HEALTH, DEFAULT_LISTEN, Settings
from sidecar.domain.errors import LedgerError, place_of
from sidecar.domain.retention import TrimBound
from sidecar.server.admin import AdminServer, admin_path
from sidecar.server.guard import Guard
from sidecar.server.health import HealthServer
from sidecar.server.server import Server, give_socket
from sidecar.server.servicers import RecordServicer, RenderServicer
from sidecar.services.administration import Administration
from sidecar.services.health import Health, checks_of
from sidecar.services.maintenance import Maintenance
from sidecar.services.record import Record
from sidecar.services.render import Render
from sidecar.store.lock import Lock
from sidecar.store.store import Store
from sidecar.telemetry.prompt_size import prompt_size_reporter
from sidecar.telemetry.setup import Telemetry

_log = logging.getLogger("turnledger.app")

#: Seconds that calls under way get to finish after SIGTERM; well within Kubernetes' default of 30.
GRACE_S: Final = 10.0

#: Jobs that may wait in the store beside one of each call: those of callers that left at their deadline while the disk
#: hung, and what maintenance and batches of fits want.
_MORE_JOBS: Final = 1_024

#: Seconds between looks at sizes and components: a dashboard's finest step.
_WATCH_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Launch:
    """What the process was started with. `refusal` is what was wrong with its configuration: every call is told."""

    settings: Settings
    refusal: LedgerError | None = None
    vfs: str | None = None
    found: Effective | None = None

    @property
    def address(self) -> Address:
        """Where to listen: the default socket where the configured address is part of what is wrong."""
        return _or_default(parse_listen, self.settings.sidecar.listen, DEFAULT_LISTEN)

    @property
    def health(self) -> Address:
        """Where health is served, likewise."""
        return _or_default(parse_health, self.settings.sidecar.health, DEFAULT_HEALTH)


class App:
    """One sidecar. Whatever the state of store and configuration, it binds and answers."""

    def __init__(self, launch: Launch) -> None:
        """Wire everything; touch nothing. Needs a running event loop."""
        self._launch = launch
        settings = launch.settings.sidecar
        self._reloader = Reloader(launch.found or Effective(launch.settings), self._reloaded)
        session = self._reloader.session
        bound = TrimBound(session().max_entries)
        self._telemetry = Telemetry()
        metrics = self._telemetry.metrics
        room = settings.limits.concurrent_calls + _MORE_JOBS
        self._store = Store(settings.store_file, clock=_now, room=room, vfs=launch.vfs, observer=metrics)
        record = Record(self._store, session, lambda: str(uuid.uuid4()), bound, metrics)
        render = Render(self._store, session, prompt_size_reporter(self._telemetry.events), metrics)
        self._maintenance = Maintenance(
            self._store,
            session,
            bound,
            interval_s=settings.sweep.interval_s,
            clock=_now,
            uptime=time.monotonic,
            observer=metrics,
        )
        self._health = Health(
            checks_of(self._store, self._reloader.state, self._configuration_trouble), time.monotonic, metrics.health
        )
        administration = Administration(self._store, record, self._maintenance, self._health, self._reloader.state)
        guard = Guard(settings.limits.concurrent_calls, self._telemetry.rpc, launch.refusal)
        self._server = Server(RecordServicer(record), RenderServicer(render), guard)
        self._health_server = HealthServer(self._health)
        self._admin = AdminServer(admin_path(settings.store_file), administration)
        self._socket_lock: Lock | None = None
        self._socket_trouble: LedgerError | None = None
        self._stopping = asyncio.Event()
        self._hurrying = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()
        self.begins_anew = False
        self.address = launch.address
        self.health = launch.health

    async def startup(self) -> None:
        """Bind first, so that callers get answers; the store opens meanwhile."""
        if self._launch.refusal is not None:
            _log.error("the configuration is wrong, and every call will say so: %s", self._launch.refusal.message)
        self._start("the health port", self._serve_health())
        self._start("following the settings file", self._reloader.run())
        with _timed("listening"):
            if self.address.socket is not None:
                self._socket_lock = await own_socket(self.address.socket)
            self.address = await bind_until_free(self.address, self._server.start)
            self._give_socket()
        _log.info("listening on %s, process %d", self.address.target, os.getpid())
        if self._launch.refusal is None:
            self._store.start()
            self._start("the admin socket", self._serve_admin())
            self._start("maintenance", self._maintain())
        if self._telemetry.measures:
            self._telemetry.look = self._look_at_queues
            self._start("watching", self._watch())

    async def main_loop(self) -> None:
        """Serve until `stop` is called."""
        await self._stopping.wait()

    def stop(self) -> None:
        """End `main_loop`. Asked for once more: cut the grace of the calls under way."""
        if self._stopping.is_set() and not self.begins_anew:
            self._hurrying.set()
        self.begins_anew = False
        self._stopping.set()

    async def shutdown(self) -> None:
        """Stop accepting, finish what runs, close the store, flush telemetry."""
        _log.info("stopping")
        with _timed("the calls under way"):
            await self._finish_calls()
        with _timed("maintenance and commands"):
            await self._end_background()
            await self._admin.stop()
            await self._health.close()
        with _timed("the store"):
            await self._store.close()
        if self._socket_lock is not None:
            self._socket_lock.release()
        await self._health_server.stop()
        with _timed("telemetry"):
            await self._telemetry.close()
        _log.info("stopped")

    async def run(self) -> None:
        """The three phases, in order, and the last one whatever happens. SIGTERM and SIGINT stop it from the start."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._reloader.reload_now)
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

    def _give_socket(self) -> None:
        """A group that cannot be had costs the engine its way in: said here and by health, and mended by a restart."""
        group = self._launch.settings.sidecar.socket_group
        if self.address.socket is None or group is None:
            return
        try:
            give_socket(self.address.socket, group)
        except LedgerError as error:
            _log.error("the socket keeps the group that it has: %s", error.message)
            self._socket_trouble = error

    async def _serve_health(self) -> None:
        self.health = await bind_until_free(self.health, self._health_server.start)
        _log.info("health on %s", self.health.target)

    async def _serve_admin(self) -> None:
        await self._store.owned()
        try:
            await self._admin.start()
        except OSError as error:
            _log.error("commands cannot reach this sidecar, its admin socket cannot be made: %s", error.strerror)

    async def _maintain(self) -> None:
        await self._store.owned()
        if self._telemetry.measures:
            with suppress(LedgerError):  # counted again after the first sweep
                await self._store.opened()
                await self._maintenance.count()
        await self._maintenance.run()

    def _look_at_queues(self) -> None:
        self._telemetry.metrics.queues(self._store.waiting())

    async def _watch(self) -> None:
        """Look at what no call tells of, for the metrics; a component is watched also where nobody probes it."""
        while True:
            await self._health.states()
            with suppress(LedgerError):  # the components say so
                sizes = await self._store.sizes()
                parts = {"database": sizes.store_bytes, "log": sizes.log_bytes, "free": sizes.free_bytes}
                self._telemetry.metrics.sizes(parts, sizes.disk_free_bytes, sizes.disk_total_bytes)
            await asyncio.sleep(_WATCH_S)

    def _reloaded(self, reload: Reload) -> None:
        """A process whose file was wrong from the start begins anew once it is right, unless it is being stopped."""
        self._telemetry.metrics.reloaded(reload.outcome.value)
        if reload.outcome is Outcome.CORRECTED:
            self.begins_anew = not self._stopping.is_set()
            self._stopping.set()

    def _configuration_trouble(self) -> LedgerError | None:
        return self._launch.refusal or self._socket_trouble

    async def _finish_calls(self) -> None:
        """Within the grace, or at once where somebody asks a second time."""
        finishing = asyncio.ensure_future(self._server.stop(GRACE_S))
        hurrying = asyncio.ensure_future(self._hurrying.wait())
        await asyncio.wait({finishing, hurrying}, return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        if not finishing.done():
            _log.warning("asked to stop a second time: calls under way are ended")
            await self._server.stop(0)
        await finishing

    def _start(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=what)
        task.add_done_callback(_say_if_it_failed)
        self._background.add(task)

    async def _end_background(self) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)


def _or_default(parse: Callable[[str], Address], text: str, default: str) -> Address:
    try:
        return parse(text)
    except LedgerError:
        return parse(default)


def _say_if_it_failed(task: asyncio.Task[None]) -> None:
    """When it happens: its work is not done from then on."""
    if not task.cancelled() and (bug := task.exception()) is not None:
        _log.error(
            "bug in %s, which ends until a restart: %s at %s", task.get_name(), type(bug).__name__, place_of(bug)
        )


def _now() -> int:
    return int(time.time())


@contextmanager
def _timed(phase: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    _log.info("%s: done in %.0f ms", phase, (time.monotonic() - began) * 1000)
