"""A real OTLP receiver: gRPC, on loopback, keeping all that it is sent."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

_SERVICES = {
    "trace": (trace_service_pb2.ExportTraceServiceRequest, trace_service_pb2.ExportTraceServiceResponse),
    "metrics": (metrics_service_pb2.ExportMetricsServiceRequest, metrics_service_pb2.ExportMetricsServiceResponse),
    "logs": (logs_service_pb2.ExportLogsServiceRequest, logs_service_pb2.ExportLogsServiceResponse),
}


@dataclass
class Received:
    """What came, as it came. `target` is where."""

    target: str = ""
    requests: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _SERVICES})

    @property
    def spans(self) -> list[Span]:
        """All spans."""
        return [
            span
            for request in self.requests["trace"]
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def records(self) -> list[LogRecord]:
        """All log records, events among them."""
        return [
            record
            for request in self.requests["logs"]
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics as they stood last."""
        return {metric.name: metric for metric in self._metrics()}

    def resources(self) -> list[dict[str, Any]]:
        """Whose they were."""
        return [
            attributes_of(each.resource.attributes)
            for request in self.requests["metrics"]
            for each in request.resource_metrics
        ]

    def everything(self) -> str:
        """All of it as text, to be searched."""
        return repr(self.requests)

    def _metrics(self) -> Iterator[Metric]:
        for request in self.requests["metrics"]:
            for resource in request.resource_metrics:
                for scope in resource.scope_metrics:
                    yield from scope.metrics


@asynccontextmanager
async def receiving() -> AsyncIterator[Received]:
    """A receiver for one test."""
    received = Received()
    server = grpc.aio.server()
    for name, (request, response) in _SERVICES.items():
        server.add_generic_rpc_handlers((_service(name, request, response, received.requests[name]),))
    port = server.add_insecure_port("127.0.0.1:0")
    received.target = f"http://127.0.0.1:{port}"
    await server.start()
    try:
        yield received
    finally:
        await server.stop(0)


def attributes_of(pairs: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    return {pair.key: _plain(pair) for pair in pairs}


def points_of(metric: Metric) -> list[Any]:
    """A metric's data points, of whichever kind it is."""
    return list(getattr(metric, str(metric.WhichOneof("data"))).data_points)


def _plain(pair: KeyValue) -> Any:
    value: AnyValue = pair.value
    return getattr(value, str(value.WhichOneof("value")))


def _service(name: str, request: Any, response: Any, kept: list[Any]) -> grpc.GenericRpcHandler:
    async def export(message: Any, _context: Any) -> Any:
        kept.append(message)
        return response()

    handler = grpc.unary_unary_rpc_method_handler(
        export, request_deserializer=request.FromString, response_serializer=response.SerializeToString
    )
    service = f"opentelemetry.proto.collector.{name}.v1.{name.capitalize()}Service"
    return grpc.method_handlers_generic_handler(service, {"Export": handler})
