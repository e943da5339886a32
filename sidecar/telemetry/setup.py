"""OpenTelemetry as the standard `OTEL_*` variables ask for it; without them nothing is exported."""

import asyncio
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, Final

from opentelemetry._logs import Logger, NoOpLogger
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.exporter import InvalidCompressionValueException
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from sidecar.telemetry import LEFT_OUT
from sidecar.telemetry.logs import OtlpHandler, bridge
from sidecar.telemetry.metrics import Metrics
from sidecar.telemetry.rpc import RpcTelemetry
from sidecar.telemetry.spans import SCOPE, Tracing
from sidecar.telemetry.tally import Distribution

_log: Final = logging.getLogger("turnledger.telemetry")

#: Seconds that a stopping sidecar gives to the last export. A dead collector must not hold up a pod's end.
_FLUSH_S: Final = 2.0

#: Where the SDK's exporters send what no variable sends elsewhere, as the standard has it.
_DEFAULT_ENDPOINT: Final = "http://localhost:4317"

#: The SDK counts by itself what its queues dropped and its exporters could not send, if this is on.
_OWN_METRICS: Final = "OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED"


class Telemetry:
    """The process's exporters, if any are asked for. What the variables hold that cannot be is said, and left out."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._closing: list[Callable[[], Any]] = []
        self._meters: MeterProvider | None = None
        self._handler: OtlpHandler | None = None
        self.metrics = Metrics()
        self.look: Callable[[], None] = lambda: None
        self.events: Logger = NoOpLogger(SCOPE)
        tracing = None
        for name in LEFT_OUT:
            _log.error("%s is no number, and was left out", name)
        signals = [signal for signal in ("traces", "metrics", "logs") if self._wanted(signal)]
        if signals:
            self._say_what_is_not_spoken()
            os.environ.setdefault(_OWN_METRICS, "true")
            resource = self._try("resource", self._resource) or Resource({})
            if "metrics" in signals:
                self._try("metrics", lambda: self._start_metrics(resource))
            if "logs" in signals:
                self._try("logs", lambda: self._start_logs(resource))
            if "traces" in signals:
                tracing = self._try("traces", lambda: self._start_traces(resource))
        self.rpc = RpcTelemetry(self.metrics if self._meters else None, tracing, follows=self._handler is not None)

    @property
    def measures(self) -> bool:
        """Whether anybody will see the metrics."""
        return self._meters is not None

    async def close(self) -> None:
        """Export what is left, for `_FLUSH_S` at most: the exporters keep no timeout where nothing listens."""
        if self._handler is not None:
            logging.getLogger().removeHandler(self._handler)
        # Daemons: an export that still waits for a dead collector must not keep the process from ending.
        flushes = [threading.Thread(target=end, name="turnledger-flush", daemon=True) for end in self._closing]
        for flush in flushes:
            flush.start()
        await asyncio.to_thread(_join, flushes, _FLUSH_S)

    def _look(self) -> None:
        self.look()

    def _start_metrics(self, resource: Resource) -> None:
        reader = PeriodicExportingMetricReader(_Exporter(self.metrics.distributions))
        self._meters = MeterProvider([reader], resource, shutdown_on_exit=False)
        self.metrics.register(self._meters.get_meter(SCOPE), self._look)
        self._closing.append(self._meters.shutdown)

    def _start_logs(self, resource: Resource) -> None:
        provider = LoggerProvider(resource, shutdown_on_exit=False, meter_provider=self._meters)
        provider.add_log_record_processor(
            BatchLogRecordProcessor(OTLPLogExporter(meter_provider=self._meters), meter_provider=self._meters)
        )
        self.events = provider.get_logger(SCOPE)
        self._handler = bridge(self.events)
        self._closing.append(provider.shutdown)

    def _start_traces(self, resource: Resource) -> Tracing:
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        processor = BatchSpanProcessor(OTLPSpanExporter(meter_provider=self._meters), meter_provider=self._meters)
        self._closing.append(processor.shutdown)
        return Tracing(provider, processor)

    def _wanted(self, signal: str) -> bool:
        """Whether the signal's exporter is OTLP: asked for by name, or, where none is named, by an endpoint."""
        exporter = self._environ.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip().lower()
        off = self._environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
        endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
        is_placed = any(self._environ.get(name) for name in endpoints)
        if off or exporter == "none" or not (exporter or is_placed):
            return False
        asked = [each.strip() for each in (exporter or "otlp").split(",")]
        if asked != ["otlp"]:
            _log.warning("%s are exported by OTLP alone, and the variables ask for %s", signal, exporter)
        if "otlp" in asked and not is_placed:
            _log.info("no endpoint is given for %s: they go to the standard's default, %s", signal, _DEFAULT_ENDPOINT)
        return "otlp" in asked

    def _say_what_is_not_spoken(self) -> None:
        for name, value in self._environ.items():
            if name.startswith("OTEL_EXPORTER_OTLP") and name.endswith("PROTOCOL") and value not in ("", "grpc"):
                _log.warning("%s asks for %s, and only grpc is spoken: that is what is sent", name, value)

    def _resource(self) -> Resource:
        """What the variables say of the process, with a name, a version and an instance where they say none."""
        own = {"service.version": version("turnledger-sidecar"), "service.instance.id": str(uuid.uuid4())}
        if not self._environ.get("OTEL_SERVICE_NAME") and "service.name=" not in self._environ.get(
            "OTEL_RESOURCE_ATTRIBUTES", ""
        ):
            own["service.name"] = "turnledger"
        return Resource(own).merge(Resource.create({})) if "service.name" not in own else Resource.create(own)

    def _try(self, what: str, start: Callable[[], Any]) -> Any:
        """Wrong values in the variables must not keep a sidecar from its engine."""
        try:
            return start()
        except (ValueError, TypeError, KeyError, OSError, RuntimeError, InvalidCompressionValueException) as error:
            _log.error("no %s: the OTEL_* variables cannot be followed (%s)", what, type(error).__name__)
            return None


class _Exporter(OTLPMetricExporter):
    """Adds our histograms to what the SDK has collected."""

    def __init__(self, distributions: list[Distribution]) -> None:
        super().__init__()
        self._distributions = distributions

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        """Send both."""
        measured = [metric for metric in (each.read() for each in self._distributions) if metric is not None]
        for resource in metrics_data.resource_metrics:
            for scope in resource.scope_metrics:
                if scope.scope.name == SCOPE and isinstance(scope.metrics, list):
                    scope.metrics.extend(measured)
        return super().export(metrics_data, timeout_millis, **kwargs)


def _join(threads: list[threading.Thread], seconds: float) -> None:
    """Wait for all of them, no longer than that together."""
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0.0))
