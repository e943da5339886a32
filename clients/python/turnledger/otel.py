"""The client in OpenTelemetry, by its API alone (`turnledger[otel]`): the engine's own SDK decides what becomes of it.

Every name is in docs/telemetry.md. No attribute carries text of an entry or of a prompt, and no metric a key of a turn.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from opentelemetry import metrics, propagate, trace
from opentelemetry._logs import LoggerProvider, SeverityNumber, get_logger
from opentelemetry.metrics import Histogram, MeterProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

from turnledger.events import (
    Composer,
    Event,
    HistoryRead,
    MessageComposed,
    OrderFilled,
    TextRepaired,
    TurnEnded,
    TurnSettled,
    TurnsForgotten,
)
from turnledger.failure import Failure
from turnledger.telemetry import Call, Metadata

_SCOPE: Final = "turnledger.client"

#: Buckets of `rpc.client.call.duration`, in seconds, as the RPC conventions have them.
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)

Attributes = Mapping[str, str | int]


class OpenTelemetry:
    """Spans, counts and the event `prompt.size`, on the given providers, or on the global ones."""

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
    ) -> None:
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
        self._events = get_logger(_SCOPE, logger_provider=logger_provider)
        self._counts = _Counts(meter_provider)

    def call(self, method: str, target: str) -> Call:
        """A client span for one try, within the caller's trace."""
        attributes = {"rpc.system.name": "grpc", "rpc.method": method, **_server(target)}
        span = self._tracer.start_span(method, kind=SpanKind.CLIENT, attributes=attributes)
        return _Call(span, self._counts.duration, attributes)

    def observe(self, event: Event) -> None:
        """Count it. A round that was composed here is told as the sidecar tells of its own."""
        self._counts.add(event)
        if isinstance(event, MessageComposed) and event.composer is Composer.CLIENT:
            self._events.emit(
                event_name="prompt.size",
                timestamp=time.time_ns(),
                severity_number=SeverityNumber.INFO,
                attributes=_prompt_size(event),
            )


class _Call:
    """A span that knows when it began."""

    def __init__(self, span: Span, duration: Histogram, attributes: Attributes) -> None:
        self._span = span
        self._duration = duration
        self._attributes = attributes
        self._began = time.perf_counter()
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        self.metadata: Metadata = tuple((key.lower(), value) for key, value in carrier.items())

    def end(self, failure: Failure | None) -> None:
        """With the status that the wire had, or that the library found by itself."""
        ended = {"rpc.response.status_code": failure.code if failure else "OK"}
        if failure is not None:
            ended["error.type"] = failure.reason if failure.code == "OK" else failure.code
            self._span.set_attribute("turnledger.reason", failure.reason)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.set_attributes(ended)
        self._span.end()
        self._duration.record(time.perf_counter() - self._began, {**self._attributes, **ended})


class _Counts:
    """What `Ledger.stats` counts, by event, as instruments."""

    def __init__(self, provider: MeterProvider | None) -> None:
        meter = metrics.get_meter(_SCOPE, meter_provider=provider)
        self.duration = meter.create_histogram(
            "rpc.client.call.duration",
            unit="s",
            description="Tries on the wire, each by itself.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._reads = meter.create_counter(
            "turnledger.client.reads", "{read}", "Turns that began; with error.type those that began without a history."
        )
        self._messages = meter.create_counter(
            "turnledger.client.messages", "{message}", "Rounds that got their message, by who composed it."
        )
        self._turns = meter.create_counter(
            "turnledger.client.turns", "{turn}", "Turns that ended; with error.type those that may not be recorded."
        )
        self._settles = meter.create_counter("turnledger.client.settles", "{settle}", "Settles, by outcome.")
        self._forgets = meter.create_counter("turnledger.client.forgets", "{forget}", "Forgets, by whether erased.")
        self._orders = meter.create_counter("turnledger.client.orders", "{order}", "Orders that are over.")
        self._rewriter_calls = meter.create_counter(
            "turnledger.client.rewriter.calls", "{call}", "Calls of the seats' auxiliary models."
        )
        self._rewriter_tokens = meter.create_counter(
            "turnledger.client.rewriter.tokens", "{token}", "What those calls took, as far as they said so."
        )
        self._repaired = meter.create_counter(
            "turnledger.client.repaired", "{surrogate}", "Lone surrogates that became U+FFFD."
        )

    def add(self, event: Event) -> None:
        """Count one event."""
        match event:
            case HistoryRead(state=state, failure=failure):
                self._reads.add(1, _ended("turnledger.history.state", state, failure))
            case MessageComposed(composer=composer, failure=failure):
                self._messages.add(1, {"turnledger.composer": composer.value, **_error(failure)})
            case TurnEnded():
                self._turns.add(1, _turn(event))
            case TurnSettled(settlement=settlement):
                self._settles.add(1, _ended("turnledger.settle.outcome", settlement.outcome, settlement.failure))
            case TurnsForgotten(forgotten=forgotten, failure=failure):
                erasure = forgotten.erasure if forgotten else None
                self._forgets.add(1, _ended("turnledger.erasure", erasure, failure))
            case TextRepaired(replaced=replaced):
                self._repaired.add(replaced)
            case OrderFilled():
                self._order(event)

    def _order(self, event: OrderFilled) -> None:
        kind = {"turnledger.order.kind": event.kind.value}
        self._orders.add(1, {**kind, "turnledger.order.outcome": event.outcome.value})
        if event.calls:
            self._rewriter_calls.add(event.calls, kind)
            self._rewriter_tokens.add(event.prompt_tokens, {**kind, "gen_ai.token.type": "input"})
            self._rewriter_tokens.add(event.completion_tokens, {**kind, "gen_ai.token.type": "output"})


def _server(target: str) -> Attributes:
    """A socket's path is an address by itself."""
    if target.startswith("unix:"):
        return {"server.address": target.removeprefix("unix:")}
    host, _, port = target.rpartition(":")
    return {"server.address": host, "server.port": int(port)}


def _turn(event: TurnEnded) -> dict[str, str]:
    receipt = event.receipt
    ended = {"turnledger.run_end": event.run_end.value}
    if receipt.skip_reason is not None:
        ended["turnledger.skip_reason"] = receipt.skip_reason.value
    return {**ended, **_ended("turnledger.disposition", receipt.disposition, receipt.failure)}


def _ended(name: str, outcome: str | None, failure: Failure | None) -> dict[str, str]:
    """What it came to, or why to nothing."""
    return {**({name: str(outcome)} if outcome is not None else {}), **_error(failure)}


def _error(failure: Failure | None) -> dict[str, str]:
    """The reason: one of ours or the name of a gRPC status, so there are few."""
    return {"error.type": failure.reason} if failure else {}


def _prompt_size(event: MessageComposed) -> dict[str, str | int]:
    given = {"system_bytes": event.system_bytes, "tool_bytes": event.tool_bytes}
    return {
        **asdict(event.size),
        "phase": event.phase.value,
        "iteration": event.iteration,
        "agent_handle": event.keys.agent_handle,
        "conversation_key": event.keys.conversation_key,
        "turn_id": event.keys.turn_id,
        "composer": event.composer.value,
        **{name: value for name, value in given.items() if value is not None},
    }
