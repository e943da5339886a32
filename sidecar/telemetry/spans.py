"""Server spans, joined to the engine's trace by W3C trace context.

Built here and handed to the SDK's processor: its own `start_span` takes 50 µs where this takes 15, and an Append as a
whole takes some 250 (docs/adr/0014-telemetry.md). Sampler, resource, ids, batching and export are the SDK's.
"""

import re
import time
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    format_trace_id,
    set_span_in_context,
)

SCOPE: Final = "turnledger.sidecar"

#: version-trace-parent-flags; a version later than 00 may have more after them, and ff is none.
_TRACEPARENT: Final = re.compile(r"(?!ff|00.{54,})[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")

_UNSET: Final = Status(StatusCode.UNSET)
_ERROR: Final = Status(StatusCode.ERROR)

Attributes = dict[str, str | int | float]


@dataclass
class ServerSpan:
    """One call's span. A sampled one is exported; what is told of the others is that there was such a trace."""

    name: str
    trace_id: int
    parent: SpanContext | None
    sampled: bool
    trace_state: TraceState | None
    ids: IdGenerator | None
    started_ns: int

    @cached_property
    def context(self) -> SpanContext:
        """Its identity, made when somebody wants it: nobody does for most that are not sampled.

        Where no spans are made (`ids` is None) it is the caller's own, for what else is told of the call.
        """
        if self.ids is None and self.parent is not None:
            return self.parent
        flags = TraceFlags(TraceFlags.SAMPLED if self.sampled else TraceFlags.DEFAULT)
        return SpanContext(
            self.trace_id, self._span_id(), is_remote=False, trace_flags=flags, trace_state=self.trace_state
        )

    def _span_id(self) -> int:
        return 0 if self.ids is None else self.ids.generate_span_id()

    @property
    def trace_id_hex(self) -> str:
        """As people look for it: 32 lower-case hex digits."""
        return format_trace_id(self.trace_id)


#: The span of the call that is being served, for its log lines and events.
CURRENT: Final[ContextVar[ServerSpan | None]] = ContextVar("span", default=None)


class Tracing:
    """Begins and ends server spans."""

    def __init__(self, provider: TracerProvider, processor: SpanProcessor) -> None:
        """The provider says who samples, which ids there are and what the process is; the processor exports."""
        self._ids = provider.id_generator
        self._sampler = provider.sampler
        self._resource = provider.resource
        self._processor = processor
        self._scope = InstrumentationScope(SCOPE)

    def begin(self, name: str, metadata: Iterable[tuple[str, str | bytes]]) -> ServerSpan:
        """A span below the caller's, or the first of a trace of its own."""
        parent = parent_of(metadata)
        trace_id = parent.trace_id if parent else self._ids.generate_trace_id()
        within = set_span_in_context(NonRecordingSpan(parent)) if parent else None
        verdict = self._sampler.should_sample(within, trace_id, name, SpanKind.SERVER)
        sampled = verdict.decision is Decision.RECORD_AND_SAMPLE
        return ServerSpan(name, trace_id, parent, sampled, verdict.trace_state, self._ids, time.time_ns())

    def end(self, span: ServerSpan, attributes: Attributes, *, failed: bool) -> None:
        """It is over; a sampled one goes to the exporter's queue."""
        if not span.sampled:
            return
        self._processor.on_end(
            ReadableSpan(
                name=span.name,
                context=span.context,
                parent=span.parent,
                resource=self._resource,
                attributes=attributes,
                kind=SpanKind.SERVER,
                status=_ERROR if failed else _UNSET,
                start_time=span.started_ns,
                end_time=time.time_ns(),
                instrumentation_scope=self._scope,
            )
        )


def followed(name: str, metadata: Iterable[tuple[str, str | bytes]]) -> ServerSpan | None:
    """The caller's span in the place of our own, where none are made: events and log lines stand in its trace."""
    parent = parent_of(metadata)
    if parent is None:
        return None
    return ServerSpan(name, parent.trace_id, parent, sampled=False, trace_state=None, ids=None, started_ns=0)


def parent_of(metadata: Iterable[tuple[str, str | bytes]]) -> SpanContext | None:
    """The caller's span, if the metadata names one that is valid. Anything else is no reason to refuse a call."""
    header, states = "", ""
    for key, value in metadata:
        if key == "traceparent" and isinstance(value, str):
            header = value
        elif key == "tracestate" and isinstance(value, str):
            states = value
    found = _TRACEPARENT.fullmatch(header)
    if found is None:
        return None
    context = SpanContext(
        int(found[1], 16),
        int(found[2], 16),
        is_remote=True,
        trace_flags=TraceFlags(int(found[3], 16)),
        trace_state=TraceState.from_header([states]) if states else None,
    )
    return context if context.is_valid else None
