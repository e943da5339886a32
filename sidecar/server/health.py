"""The health port: `grpc.health.v1` and nothing else, since it listens where kubelet can reach it."""

import asyncio
from typing import TYPE_CHECKING, Final, Literal, NoReturn

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sidecar.config.listen import Address
from sidecar.services.health import Health, State

if TYPE_CHECKING:  # generic in the type stubs alone
    CheckContext = grpc.aio.ServicerContext[health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse]

#: Names that ask for the process alone. Startup and liveness probes use them: a broken store restarts no pod.
PROCESS: Final = ("", "liveness")

#: The trailing metadata in which an unwell component says why.
DETAIL_KEY: Final = "turnledger-detail-bin"

#: Seconds between looks on behalf of a watcher.
_WATCH_S: Final = 1.0

#: Probers are few, and none has reason to send much.
_OPTIONS: Final = (("grpc.max_receive_message_length", 4 * 1024), ("grpc.so_reuseport", 0))
_CALLS_AT_ONCE: Final = 64

#: Watchers stay. With room for checks left whatever their number, they keep no liveness probe out.
_WATCHERS: Final = 32

_Response = health_pb2.HealthCheckResponse


class HealthServicer(health_pb2_grpc.HealthServicer):
    """`grpc.health.v1.Health` over the components."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._watchers = 0

    async def Check(  # noqa: N802  gRPC's name
        self, request: health_pb2.HealthCheckRequest, context: "CheckContext"
    ) -> health_pb2.HealthCheckResponse:
        """One look."""
        if request.service not in (*PROCESS, *self._health.components):
            await _unknown(context)
        state = await self._state(request.service)
        if not state.well:
            context.set_trailing_metadata(((DETAIL_KEY, state.detail.encode()),))
        return _Response(status=_status(state))

    async def Watch(  # noqa: N802  gRPC's name
        self, request: health_pb2.HealthCheckRequest, context: "CheckContext"
    ) -> None:
        """Each change, until the watcher goes. An unknown name is told as such, since it might come."""
        if self._watchers >= _WATCHERS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many watchers; use Check, or come back later")
        self._watchers += 1
        try:
            await self._tell(request, context)
        finally:
            self._watchers -= 1

    async def _tell(self, request: health_pb2.HealthCheckRequest, context: "CheckContext") -> None:
        told = None
        while True:
            status: Literal[1, 2, 3] = _Response.SERVICE_UNKNOWN
            if request.service in (*PROCESS, *self._health.components):
                status = _status(await self._state(request.service))
            if status != told:
                await context.write(_Response(status=status))
                told = status
            await asyncio.sleep(_WATCH_S)

    async def _state(self, name: str) -> State:
        return State(well=True) if name in PROCESS else await self._health.state(name)


class HealthServer:
    """The server of the health port, not yet listening."""

    def __init__(self, health: Health) -> None:
        self._server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=_CALLS_AT_ONCE)
        health_pb2_grpc.add_HealthServicer_to_server(HealthServicer(health), self._server)

    async def start(self, address: Address) -> Address:
        """Listen and serve. Answers the address with the port that it got. Raises `RuntimeError` if it is taken."""
        port = self._server.add_insecure_port(address.target)
        await self._server.start()
        return Address(host=address.host, port=port)

    async def stop(self) -> None:
        """Stop at once: watchers are not waited for."""
        await self._server.stop(0)


def _status(state: State) -> Literal[1, 2]:
    return _Response.SERVING if state.well else _Response.NOT_SERVING


async def _unknown(context: "CheckContext") -> NoReturn:
    await context.abort(grpc.StatusCode.NOT_FOUND, "no such component; docs/operations.md names those that there are")
