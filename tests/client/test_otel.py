import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id
from turnledger import Deadlines, Reply
from turnledger.otel import OpenTelemetry

from tests.client.orders import completed, five
from tests.client.rewriters import Heard, Scripted
from tests.client.scripted_sidecar import AFTER, ASK, BEFORE, KEYS, Behaviour, Open, Script, fails, hangs, serving


class Seen:
    """An engine's SDK that keeps all that it is given."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._events = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # the SDK leaves it untyped
        self._metrics = InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        loggers = LoggerProvider(shutdown_on_exit=False)
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self._events))
        meters = MeterProvider([self._metrics], shutdown_on_exit=False)
        self.telemetry = OpenTelemetry(tracer_provider=self.tracers, meter_provider=meters, logger_provider=loggers)

    @property
    def spans(self) -> dict[str, list[ReadableSpan]]:
        """The client's spans by the name of their method."""
        found: dict[str, list[ReadableSpan]] = {}
        for span in self._spans.get_finished_spans():
            found.setdefault(span.name.rpartition("/")[2], []).append(span)
        return found

    @property
    def events(self) -> list[Any]:
        """The event records."""
        return [found.log_record for found in self._events.get_finished_logs()]

    def counts(self, name: str) -> dict[tuple[tuple[str, Any], ...], Any]:
        """A metric's values by their attributes."""
        data = self._metrics.get_metrics_data()
        points = [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]
        return {tuple(sorted((point.attributes or {}).items())): getattr(point, "value", point) for point in points}


@pytest.fixture
def seen() -> Seen:
    """An SDK of the test's own."""
    return Seen()


def _with_metadata(behaviour: Behaviour, kept: list[dict[str, Any]]) -> Behaviour:
    async def behave(request: Any, context: Any) -> Any:
        kept.append(dict(context.invocation_metadata()))
        return await behaviour(request, context)

    return behave


async def test_each_call_is_a_span_of_the_engines_trace(opened: Open, target: str, seen: Seen) -> None:
    """A turn's calls are client spans below the engine's own span, and the sidecar is told which."""
    script, kept = Script(), list[dict[str, Any]]()
    script.behaviours = {
        name: [_with_metadata(behaviour, kept) for behaviour in behaviours]
        for name, behaviours in script.behaviours.items()
    }
    async with serving(script, target), opened(target, telemetry=seen.telemetry) as ledger:
        with seen.tracers.get_tracer("engine").start_as_current_span("turn") as mine:
            turn = await ledger.begin(**KEYS)
            assert await turn.user_message(**ASK) == AFTER
            await turn.complete(Reply("bye"), trigger="T")
    ours = [*seen.spans["History"], *seen.spans["UserMessage"], *seen.spans["Append"]]
    assert [span.parent.span_id for span in ours if span.parent] == [mine.get_span_context().span_id] * 3
    assert [metadata["traceparent"].rpartition("-")[0] for metadata in kept] == [
        f"00-{format_trace_id(span.context.trace_id)}-{format_span_id(span.context.span_id)}" for span in ours
    ]
    [history] = seen.spans["History"]
    assert history.kind is SpanKind.CLIENT
    assert history.name == "turnledger.v1.Render/History"
    assert dict(history.attributes or {}) == {
        "rpc.system.name": "grpc",
        "rpc.method": "turnledger.v1.Render/History",
        "server.address": target.removeprefix("unix:"),
        "rpc.response.status_code": "OK",
    }


async def test_a_span_ends_as_its_call_did(opened: Open, target: str, seen: Seen) -> None:
    """A refused call is a span in error with status and reason, one for each try."""
    full = Script(Append=fails("UNAVAILABLE", "STORE_IO", retry_seconds=0.01))
    options = {"telemetry": seen.telemetry, "deadlines": Deadlines(complete=0.5)}
    async with serving(full, target), opened(target, **options) as ledger:
        turn = await ledger.begin(**KEYS)
        receipt = await turn.complete(Reply("bye"), trigger="T")
    spans = seen.spans["Append"]
    assert len(spans) == receipt.attempts > 1
    for span in spans:
        attributes = span.attributes or {}
        assert span.status.status_code is StatusCode.ERROR
        assert attributes["rpc.response.status_code"] == attributes["error.type"] == "UNAVAILABLE"
        assert attributes["turnledger.reason"] == "STORE_IO"


async def test_a_hung_call_ends_its_span(opened: Open, target: str, seen: Seen) -> None:
    """A sidecar that never answers leaves a finished span that says so."""
    options = {"telemetry": seen.telemetry, "deadlines": Deadlines(begin=0.2)}
    async with serving(Script(History=hangs), target), opened(target, **options) as ledger:
        await ledger.begin(**KEYS)
    [span] = seen.spans["History"]
    assert (span.attributes or {})["error.type"] == "DEADLINE_EXCEEDED"


async def test_a_round_composed_here_is_told_once(opened: Open, target: str, seen: Seen) -> None:
    """Without a sidecar each round is one `prompt.size` event of the client, in the engine's trace, its sizes true."""
    async with opened(target, telemetry=seen.telemetry, deadlines=Deadlines(begin=0.3)) as ledger:
        turn = await ledger.begin(**KEYS)
        with seen.tracers.get_tracer("engine").start_as_current_span("round") as mine:
            text = await turn.user_message(**ASK, context="ü", prior_work="done", tool_bytes=7)
    [event] = seen.events
    assert event.event_name == "prompt.size"
    assert event.timestamp
    assert (event.trace_id, event.span_id) == (mine.get_span_context().trace_id, mine.get_span_context().span_id)
    assert dict(event.attributes) == {
        "user_bytes": len(text.encode()),
        "history_bytes": 0,
        "task_bytes": 6,
        "context_bytes": 2,
        "prior_work_bytes": 4,
        "approximate_tokens": -(-len(text.encode()) // 4),
        "tool_bytes": 7,
        "phase": "execute",
        "iteration": 1,
        "agent_handle": "support",
        "conversation_key": "jira:POC-7",
        "turn_id": "run-00000001",
        "composer": "client",
    }


async def test_a_round_of_the_sidecars_is_not_told_twice(opened: Open, target: str, seen: Seen) -> None:
    """Where the sidecar composed, it tells of the round, and the client counts it alone."""
    async with serving(Script(), target), opened(target, telemetry=seen.telemetry) as ledger:
        turn = await ledger.begin(**KEYS)
        await turn.user_message(**ASK)
    assert seen.events == []
    assert seen.counts("turnledger.client.messages") == {(("turnledger.composer", "sidecar"),): 1}


async def test_failing_open_is_counted(opened: Open, target: str, seen: Seen) -> None:
    """Reads, rounds and writes that failed are counted by reason, beside what `stats` says."""
    async with opened(target, telemetry=seen.telemetry, deadlines=Deadlines(begin=0.3, complete=0.3)) as ledger:
        turn = await ledger.begin(**KEYS)
        assert await turn.user_message(**ASK) == BEFORE
        await turn.complete(Reply("bye"), trigger="T")
        assert (ledger.stats.read_failures, ledger.stats.composed_locally, ledger.stats.write_failures) == (1, 1, 1)
    unreachable = ("error.type", "UNREACHABLE")
    assert seen.counts("turnledger.client.reads") == {(unreachable,): 1}
    assert seen.counts("turnledger.client.messages") == {(unreachable, ("turnledger.composer", "client")): 1}
    assert seen.counts("turnledger.client.turns") == {(unreachable, ("turnledger.run_end", "completed")): 1}


async def test_a_fit_stands_in_its_turns_trace(opened: Open, target: str, seen: Seen) -> None:
    """Orders of two turns are handed in by one worker, each within the trace of the turn that left it."""
    traces, tracer, heard = [], seen.tracers.get_tracer("engine"), Heard()
    options = {"rewriter": Scripted(), "rewrites_at_once": 1, "on_event": heard, "telemetry": seen.telemetry}
    async with serving(Script(Append=five()), target), opened(target, **options) as ledger:
        for number in range(2):
            with tracer.start_as_current_span("turn") as mine:
                traces.append(mine.get_span_context().trace_id)
                await completed(ledger, conversation_key=f"jira:POC-{number}")
        await heard.of(10)
    assert [span.context.trace_id for span in seen.spans["Fit"]] == [traces[0]] * 5 + [traces[1]] * 5
    assert seen.counts("turnledger.client.orders") == {
        (("turnledger.order.kind", "note"), ("turnledger.order.outcome", "accepted")): 10
    }
    assert seen.counts("turnledger.client.rewriter.calls") == {(("turnledger.order.kind", "note"),): 10}


async def test_no_metric_has_a_key(opened: Open, target: str, seen: Seen) -> None:
    """No metric is told apart by seat, conversation or turn, and no attribute anywhere holds a text of the turn."""
    text = "canary-5f0c"
    async with opened(target, telemetry=seen.telemetry, deadlines=Deadlines(begin=0.3, complete=0.3)) as ledger:
        turn = await ledger.begin(**KEYS)
        turn.called(text, f'{{"{text}": "{text}"}}', error=text)
        await turn.user_message(**{**ASK, "task": text}, context=text, prior_work=text)
        await turn.complete(Reply(text), trigger=text, intent=text, completed_work=text, blocked_on=text)
    told = [*seen.spans["History"], *seen.spans["Append"], *seen.events]
    assert text not in repr([(each.attributes, getattr(each, "status", "")) for each in told])
    for name in ("reads", "messages", "turns"):
        keys = {key for attributes in seen.counts(f"turnledger.client.{name}") for key, _ in attributes}
        assert keys <= {"error.type", "turnledger.composer", "turnledger.run_end"}


async def test_the_global_providers_are_found(target: str) -> None:
    """A ledger that is given no telemetry takes OpenTelemetry's own, which costs nothing without an SDK."""
    from turnledger.telemetry import installed

    found = installed()
    assert isinstance(found, OpenTelemetry)
    call = found.call("turnledger.v1.Render/History", target)
    call.end(None)
    assert trace.get_current_span().get_span_context().is_valid is False


_BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ImportError(name)
sys.meta_path.insert(0, Blocker())
from turnledger import BlockingLedger, Deadlines, Phase
with BlockingLedger(sys.argv[1], deadlines=Deadlines(begin=0.3)) as ledger:
    turn = ledger.begin(agent_handle="a", conversation_key="c", turn_id="t", work_key="w")
    print(turn.user_message(phase=Phase.EXECUTE, task="Do it."))
"""


def test_the_library_works_without_opentelemetry(target: str) -> None:
    """Where OpenTelemetry is not installed, a turn runs as it always did."""
    ran = subprocess.run([sys.executable, "-c", _BLOCKED, target], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == BEFORE


_BROKEN = """
import sys
from turnledger import Ledger
from turnledger.telemetry import NO_TELEMETRY, installed
print(installed() is NO_TELEMETRY)
"""


def test_a_wrong_variable_of_opentelemetry_stops_no_engine() -> None:
    """Where OpenTelemetry refuses its own configuration, the ledger goes without it."""
    variables = {"OTEL_PROPAGATORS": "none-such", "PYTHONPATH": ":".join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", _BROKEN], capture_output=True, text=True, check=True, env=variables)
    assert ran.stdout.strip() == "True"
