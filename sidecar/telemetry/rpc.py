"""What is told of each RPC: a span where traces are asked for, measures where metrics are, and a note of its times."""

import time
from collections.abc import Callable, Iterable
from contextvars import Token

from sidecar.domain.timing import TIMING, Timing
from sidecar.telemetry.metrics import Metrics
from sidecar.telemetry.spans import CURRENT, Attributes, ServerSpan, Tracing, followed

#: The caller's metadata, read only where somebody wants it.
Metadata = Callable[[], Iterable[tuple[str, str | bytes]] | None]


class RpcTelemetry:
    """Observes calls; `begin` in the task that serves the call, `end` of what it gave in the same task."""

    def __init__(self, metrics: Metrics | None, tracing: Tracing | None, *, follows: bool = False) -> None:
        """`follows`: without traces of our own, events and log lines still stand in the caller's."""
        self._metrics = metrics
        self._tracing = tracing
        self._follows = follows

    def begin(self, method: str, request: int, metadata: Metadata) -> "ObservedCall":
        """A call has come: such as `turnledger.v1.Record/Append`, with a request of so many bytes."""
        span = None
        if self._tracing is not None:
            span = self._tracing.begin(method, metadata() or ())
        elif self._follows:
            span = followed(method, metadata() or ())
        return ObservedCall(self._metrics, self._tracing, span, method, request)


class ObservedCall:
    """One call under way."""

    __slots__ = ("_began", "_method", "_metrics", "_request", "_span", "_timing", "_tokens", "_tracing")

    def __init__(
        self, metrics: Metrics | None, tracing: Tracing | None, span: ServerSpan | None, method: str, request: int
    ) -> None:
        self._metrics = metrics
        self._tracing = tracing
        self._span = span
        self._method = method
        self._request = request
        self._timing = Timing() if span is not None and span.sampled else None
        self._tokens: tuple[Token[ServerSpan | None], Token[Timing | None]] | None = None
        if span is not None:
            self._tokens = (CURRENT.set(span), TIMING.set(self._timing))
        self._began = time.perf_counter()

    @property
    def trace_id(self) -> str | None:
        """The trace that the call is in, where there is one."""
        return None if self._span is None else self._span.trace_id_hex

    def end(self, code: str, reason: str = "", response: int = 0) -> None:
        """It ends on the wire with this status, and with this reason unless it is OK; an answer has a size in bytes."""
        if self._metrics is not None:
            self._metrics.called(self._method, code, reason, time.perf_counter() - self._began, self._request, response)
        if self._span is not None and self._tracing is not None and self._span.sampled:
            self._tracing.end(self._span, self._attributes(code, reason, response), failed=bool(reason))
        if self._tokens is not None:
            CURRENT.reset(self._tokens[0])
            TIMING.reset(self._tokens[1])

    def _attributes(self, code: str, reason: str, response: int) -> Attributes:
        attributes: Attributes = {
            "rpc.system.name": "grpc",
            "rpc.method": self._method,
            "rpc.response.status_code": code,
            "turnledger.request.size": self._request,
        }
        if reason:
            attributes["error.type"] = code
            attributes["turnledger.reason"] = reason
        else:
            attributes["turnledger.response.size"] = response
        if self._timing is not None and self._timing.held_s:
            attributes |= {"db.system.name": "sqlite", **_parts(self._timing)}
        return attributes


def _parts(timing: Timing) -> Attributes:
    """Seconds; a part that there was not is left out."""
    parts = {
        "turnledger.store.wait": timing.waited_s,
        "turnledger.store.hold": timing.held_s,
        "turnledger.store.commit": timing.committed_s,
        "turnledger.compose": timing.composed_s,
    }
    return {name: seconds for name, seconds in parts.items() if seconds}
