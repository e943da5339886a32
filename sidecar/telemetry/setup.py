"""OpenTelemetry as the standard `OTEL_*` variables ask for it; without them nothing is exported."""

import asyncio
import os
import threading
from typing import Final

from opentelemetry._logs import Logger, NoOpLogger
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

_SCOPE: Final = "turnledger"

#: Seconds that a stopping sidecar gives to the last export. A dead collector must not hold up a pod's end.
_FLUSH_S: Final = 2.0

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")


class Telemetry:
    """The process's exporters, if any are asked for."""

    def __init__(self) -> None:
        self._provider = LoggerProvider(shutdown_on_exit=False) if _asked_for() else None
        if self._provider is not None:
            self._provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))

    @property
    def events(self) -> Logger:
        """Where events go."""
        return NoOpLogger(_SCOPE) if self._provider is None else self._provider.get_logger(_SCOPE)

    async def close(self) -> None:
        """Export what is left, for `_FLUSH_S` at most: the exporter keeps no timeout where nothing listens."""
        if self._provider is None:
            return
        # A daemon: an export that still waits for a dead collector must not keep the process from ending.
        flush = threading.Thread(target=self._provider.shutdown, name="turnledger-flush", daemon=True)
        flush.start()
        await asyncio.to_thread(flush.join, _FLUSH_S)


def _asked_for() -> bool:
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return not off and any(os.environ.get(name) for name in _ENDPOINTS)
