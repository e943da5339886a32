"""Log lines: structured, one for each event, with the trace that they belong to; on stderr and, if asked for, by OTLP.

An exception's text never goes out: it may quote a turn. Its type does.
"""

import json
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.trace import NonRecordingSpan, format_span_id, set_span_in_context

from sidecar.telemetry.spans import CURRENT, ServerSpan

#: What the exporters themselves have to say goes to stderr alone: sent to a collector that does not answer, it would
#: be the next thing that cannot be sent.
_OWN: Final = ("opentelemetry", "grpc")

_SEVERITIES: Final = {
    logging.DEBUG: SeverityNumber.DEBUG,
    logging.INFO: SeverityNumber.INFO,
    logging.WARNING: SeverityNumber.WARN,
    logging.ERROR: SeverityNumber.ERROR,
    logging.CRITICAL: SeverityNumber.FATAL,
}


class JsonLines(logging.Formatter):
    """One JSON object a line: time (RFC 3339, UTC), level, logger, message, and event, the message without values."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            "event": _event(record),
            **_trace(CURRENT.get()),
            **_exception(record),
        }
        return json.dumps(line, ensure_ascii=False)


class TextLines(logging.Formatter):
    """The same for a person."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        trace = CURRENT.get()
        suffix = f" trace_id={trace.trace_id_hex}" if trace else ""
        error = "".join(f" {name}={value}" for name, value in _exception(record).items())
        return f"{_moment(record)} {record.levelname:<7} {record.name}: {_message(record)}{error}{suffix}"


class OtlpHandler(logging.Handler):
    """Hands each record to OpenTelemetry's logger. The SDK's own handler is deprecated, and sends exceptions' texts."""

    def __init__(self, logger: Logger) -> None:
        super().__init__()
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        """Queue it."""
        self._logger.emit(
            timestamp=int(record.created * 1e9),
            observed_timestamp=time.time_ns(),
            context=context_of(CURRENT.get()),
            severity_number=_SEVERITIES.get(record.levelno, SeverityNumber.UNSPECIFIED),
            severity_text=record.levelname,
            body=_message(record),
            attributes={"turnledger.logger": record.name, "turnledger.event": _event(record), **_exception(record)},
        )


def log_to(stream: TextIO, level: str, *, as_json: bool) -> None:
    """Send all log lines of the process to the stream, from this level on. Replaces what was there."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if as_json else TextLines())
    root = logging.getLogger()
    for before in list(root.handlers):
        if isinstance(before, logging.StreamHandler | OtlpHandler):
            root.removeHandler(before)
    root.addHandler(handler)
    root.setLevel(level.upper())


def bridge(logger: Logger) -> OtlpHandler:
    """Send them to OpenTelemetry too; remove the handler to end that."""
    handler = OtlpHandler(logger)
    handler.addFilter(lambda record: not record.name.startswith(_OWN))
    logging.getLogger().addHandler(handler)
    return handler


def context_of(span: ServerSpan | None) -> Any:
    """The span as OpenTelemetry's context, for what is told of it; None where there is none."""
    return None if span is None else set_span_in_context(NonRecordingSpan(span.context))


def _message(record: logging.LogRecord) -> str:
    """One line, whatever was logged. Of asyncio's only the first: the others quote an exception."""
    lines = record.getMessage().splitlines() or [""]
    return lines[0] if record.name == "asyncio" else " ".join(lines)


def _event(record: logging.LogRecord) -> str:
    """The message without its values, which asyncio's has not."""
    return _message(record) if record.name == "asyncio" else str(record.msg)


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _trace(span: ServerSpan | None) -> Mapping[str, str]:
    if span is None:
        return {}
    return {"trace_id": span.trace_id_hex, "span_id": format_span_id(span.context.span_id)}


def _exception(record: logging.LogRecord) -> Mapping[str, str]:
    kind = record.exc_info[0] if record.exc_info else None
    return {} if kind is None else {"exception.type": kind.__name__}
