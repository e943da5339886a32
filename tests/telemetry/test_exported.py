"""What a real sidecar exports to a real receiver, held against docs/telemetry.md both ways."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import turnledger.otel
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from turnledger import Ledger, Reply
from turnledger.otel import OpenTelemetry
from turnledger.v1 import entry_pb2, record_pb2, render_pb2

from tests.support import asking
from tests.support.patience import eventually
from tests.support.running import Caller, Process, calling, process
from tests.telemetry import table
from tests.telemetry.receiver import Received, attributes_of, points_of, receiving

#: What no telemetry may hold: in every field of every request.
CANARY = "canary-5f0c9e"

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
WITHIN = (("traceparent", f"00-{TRACE}-{PARENT}-01"),)

OFTEN = {
    "OTEL_METRIC_EXPORT_INTERVAL": "200",
    "OTEL_BSP_SCHEDULE_DELAY": "50",
    "OTEL_BLRP_SCHEDULE_DELAY": "50",
    "OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=engine-0",
}


@dataclass(frozen=True, slots=True)
class Node:
    """A sidecar, its caller, and what it exported."""

    sidecar: Process
    caller: Caller
    received: Received


@asynccontextmanager
async def _node(folder: Path, **variables: str) -> AsyncIterator[Node]:
    async with receiving() as received:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": received.target, **OFTEN, **variables}
        async with (
            process(f"unix://{folder}/s.sock", store=folder / "store.db", variables=environment) as sidecar,
            calling(sidecar.target) as caller,
        ):
            await sidecar.says("the store is open")
            yield Node(sidecar, caller, received)


def _entry(number: int) -> entry_pb2.Entry:
    calls = [
        entry_pb2.ToolCall(
            name=CANARY,
            arguments=json.dumps({CANARY: CANARY, "secret": CANARY, "long": CANARY * 40}),
            kind=entry_pb2.CALL_KIND_WRITE,
            failed=True,
            error=CANARY * 40,
            sensitive=["secret"],
        )
    ]
    return asking.entry(
        turn_id=f"0a1b2c3d-{number}",
        trigger=CANARY,
        intent=CANARY,
        reply=f"{CANARY} " * 1_000,
        completed_work=CANARY,
        blocked_on=CANARY,
        calls=calls,
    )


async def _refused(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    assert CANARY not in str(refused.value)
    code: grpc.StatusCode = refused.value.code()
    return code


async def _play(caller: Caller) -> None:
    """A conversation with everything in it, its failures too."""
    record, render = caller.record, caller.render
    answers = [await record.Append(asking.append(f"w{n}", entry=_entry(n)), metadata=WITHIN) for n in range(4)]
    await record.Append(asking.append("w0", entry=_entry(0)), metadata=WITHIN)
    await record.Append(asking.append("", entry=_entry(9)), metadata=WITHIN)
    orders = [order.order_id for answer in answers for order in answer.orders]
    fits = [record_pb2.Fit(order_id=each, original=CANARY * 40, rewrite=CANARY) for each in [*orders, CANARY]]
    await record.Fit(asking.fit(fits=fits), metadata=WITHIN)
    await record.Settle(asking.settle("w0"), metadata=WITHIN)
    history = (await render.History(asking.history(), metadata=WITHIN)).history
    await render.History(asking.history(conversation_key="empty"), metadata=WITHIN)
    message = asking.user_message(task=CANARY, context=CANARY, prior_work=CANARY, history=history, tool_bytes=3)
    message.system_bytes = 4
    await render.UserMessage(message, metadata=WITHIN)
    await record.Forget(asking.forget_turn("w1"), metadata=WITHIN)
    assert await _refused(record.Append(asking.append("w", agent_handle=""))) is grpc.StatusCode.INVALID_ARGUMENT
    assert await _refused(caller.send("Record/Append", CANARY.encode())) is grpc.StatusCode.INVALID_ARGUMENT


async def _exported(node: Node) -> None:
    """Wait until the metrics say all of it."""

    async def all_there() -> bool:
        return {"turnledger.forgotten", "turnledger.health", "turnledger.store.rows"} <= node.received.metrics.keys()

    await eventually(all_there)
    await asyncio.sleep(0.5)


async def test_a_conversation_is_told_as_documented(tmp_path: Path) -> None:
    """Everything that the page names arrives, nothing else does, and no word of an entry is in any of it."""
    async with _node(tmp_path, TURNLEDGER_SWEEP_INTERVAL_S="1") as node:
        await _play(node.caller)
        node.sidecar.send(signal.SIGHUP)
        await node.sidecar.says("swept:")
        await _exported(node)
        node.sidecar.send(signal.SIGTERM)
        assert await node.sidecar.ended() == 0
    received = node.received
    documented = table.metrics()
    ours = {name: metric for name, metric in received.metrics.items() if not name.startswith("otel.sdk.")}
    assert documented.keys() - ours.keys() == {"turnledger.reloads"}  # there was no file to reload
    assert ours.keys() <= documented.keys()
    for name, metric in ours.items():
        found = {key for point in points_of(metric) for key in attributes_of(point.attributes)}
        assert found <= documented[name], name
    spans = [attributes_of(span.attributes) for span in received.spans]
    assert {key for attributes in spans for key in attributes} == table.names("Spans")
    events = [attributes_of(each.attributes) for each in received.records if each.event_name == "prompt.size"]
    assert len(events) == 1
    assert events[0].keys() == table.names("The event `prompt.size`")
    assert CANARY not in received.everything()
    assert CANARY not in node.sidecar.log
    whole = {"service.name": "turnledger", "k8s.pod.name": "engine-0"}.items()
    assert all(whole <= resource.items() for resource in received.resources())


async def test_one_trace_from_the_caller_on(tmp_path: Path) -> None:
    """A call that names a trace is a server span of it, with the times of its parts; another begins its own."""
    async with _node(tmp_path) as node:
        await _play(node.caller)

        async def all_spans() -> bool:
            return len(node.received.spans) >= 14

        await eventually(all_spans)
    within = [span for span in node.received.spans if span.trace_id.hex() == TRACE]
    assert {span.parent_span_id.hex() for span in within} == {PARENT}
    assert {span.kind for span in within} == {Span.SPAN_KIND_SERVER}
    assert len({span.span_id for span in within}) == len(within)
    named = {span.name: attributes_of(span.attributes) for span in within}
    rpcs = ("Record/Append", "Record/Fit", "Record/Settle", "Record/Forget", "Render/History", "Render/UserMessage")
    assert named.keys() == {f"turnledger.v1.{name}" for name in rpcs}
    append = named["turnledger.v1.Record/Append"]
    assert 0 < append.get("turnledger.store.commit", 1) <= append.get("turnledger.store.hold", 1)
    assert named["turnledger.v1.Render/History"]["turnledger.store.hold"] > 0
    for span in within:
        assert 0 < span.end_time_unix_nano - span.start_time_unix_nano < 60e9
    alone = [span for span in node.received.spans if span.trace_id.hex() != TRACE]
    assert [span.parent_span_id for span in alone] == [b""] * 2
    assert {span.status.code for span in alone} == {Status.STATUS_CODE_ERROR}


async def test_one_trace_from_the_engine_to_the_commit(tmp_path: Path) -> None:
    """The client's span is below the engine's, the sidecar's below the client's, and on that one stands the commit."""
    kept = InMemorySpanExporter()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(kept))
    async with _node(tmp_path) as node:
        async with Ledger(node.sidecar.target, telemetry=OpenTelemetry(tracer_provider=tracers)) as ledger:
            with tracers.get_tracer("engine").start_as_current_span("turn") as mine:
                turn = await ledger.begin(agent_handle="a", conversation_key="c", turn_id="run-0001", work_key="w")
                await turn.complete(Reply("It ships."), trigger="Where is it?")

        async def told() -> bool:
            return len(node.received.spans) == 2

        await eventually(told)
    engine = mine.get_span_context()
    clients = {span.name: span for span in kept.get_finished_spans() if span.name != "turn"}
    for span in node.received.spans:
        client = clients[span.name]
        assert client.parent is not None
        assert client.parent.span_id == engine.span_id
        assert int.from_bytes(span.parent_span_id, "big") == client.context.span_id
        assert int.from_bytes(span.trace_id, "big") == client.context.trace_id == engine.trace_id
    commits = [attributes_of(span.attributes).get("turnledger.store.commit", 0) for span in node.received.spans]
    assert max(commits) > 0


async def test_the_event_is_in_the_callers_trace_and_its_sizes_are_true(tmp_path: Path) -> None:
    """`prompt.size` stands in the trace of its call, and `user_bytes` is the size of what the caller got."""
    async with _node(tmp_path) as node:
        answer = await node.caller.render.UserMessage(asking.user_message(task="tüsk", context="c"), metadata=WITHIN)

        async def told() -> bool:
            events = [each for each in node.received.records if each.event_name == "prompt.size"]
            return bool(events and node.received.spans)

        await eventually(told)
    [event] = [each for each in node.received.records if each.event_name == "prompt.size"]
    assert event.trace_id.hex() == TRACE
    assert event.time_unix_nano
    [span] = node.received.spans
    assert event.span_id == span.span_id
    assert attributes_of(event.attributes)["user_bytes"] == len(answer.text.encode())


async def test_what_a_parent_did_not_sample_is_not_sent(tmp_path: Path) -> None:
    """An unsampled caller costs no span, its log lines and events still name its trace."""
    async with _node(tmp_path) as node:
        unsampled = (("traceparent", f"00-{TRACE}-{PARENT}-00"),)
        await node.caller.render.UserMessage(asking.user_message(), metadata=unsampled)
        await node.caller.render.UserMessage(asking.user_message(), metadata=WITHIN)

        async def told() -> bool:
            return len([each for each in node.received.records if each.event_name == "prompt.size"]) == 2

        await eventually(told)
        await asyncio.sleep(0.2)
        assert len(node.received.spans) == 1


async def test_without_traces_events_stand_in_the_callers(tmp_path: Path) -> None:
    """With traces off, an event still has the trace and the span of whoever called."""
    async with _node(tmp_path, OTEL_TRACES_EXPORTER="none", OTEL_METRICS_EXPORTER="none") as node:
        await node.caller.render.UserMessage(asking.user_message(), metadata=WITHIN)

        async def told() -> bool:
            return any(each.event_name == "prompt.size" for each in node.received.records)

        await eventually(told)
    [event] = [each for each in node.received.records if each.event_name == "prompt.size"]
    assert (event.trace_id.hex(), event.span_id.hex()) == (TRACE, PARENT)


@pytest.mark.parametrize(
    "header",
    ["", "nonsense", f"00-{'0' * 32}-{PARENT}-01", f"ff-{TRACE}-{PARENT}-01", "00-é", f"00-{TRACE}-{PARENT}-01-more"],
)
async def test_a_broken_trace_header_refuses_no_call(tmp_path: Path, header: str) -> None:
    """Whatever stands in `traceparent`, the call is served, in a trace of its own."""
    async with _node(tmp_path) as node:
        metadata = (("traceparent", header.encode("ascii", "ignore").decode()), ("tracestate", "=,,=;" * 20))
        await node.caller.render.UserMessage(asking.user_message(), metadata=metadata)

        async def told() -> bool:
            return len(node.received.spans) == 1

        await eventually(told)
    assert node.received.spans[0].parent_span_id == b""


async def test_a_later_trace_header_is_followed(tmp_path: Path) -> None:
    """A version that is not known yet is read as far as it is, whatever it has beyond that."""
    async with _node(tmp_path) as node:
        await node.caller.render.UserMessage(
            asking.user_message(), metadata=(("traceparent", f"01-{TRACE}-{PARENT}-01-more"),)
        )

        async def told() -> bool:
            return len(node.received.spans) == 1

        await eventually(told)
    assert node.received.spans[0].parent_span_id.hex() == PARENT


async def test_a_log_line_is_json_and_is_sent(tmp_path: Path) -> None:
    """Each line on stderr is one JSON object with its fixed event, and the same record arrives by OTLP."""
    async with _node(tmp_path) as node:

        async def sent() -> bool:
            return any(each.body.string_value.startswith("the store is open") for each in node.received.records)

        await eventually(sent)
        node.sidecar.send(signal.SIGTERM)
        assert await node.sidecar.ended() == 0
    lines = [json.loads(line) for line in node.sidecar.log.splitlines()]
    assert all(line.keys() >= {"time", "level", "logger", "message", "event"} for line in lines)
    assert "the store is open: %s" in {line["event"] for line in lines}


async def test_the_span_says_what_the_wire_says(tmp_path: Path) -> None:
    """For a refused call status and reason on the span are those that the caller got."""
    async with _node(tmp_path) as node:
        append = node.caller.record.Append
        wire = {"INVALID": await _refused(append(asking.append("w", agent_handle="")))}
        (tmp_path / "store.db").unlink()
        wire["STORE_UNAVAILABLE"] = await _refused(append(asking.append("w")))

        async def told() -> bool:
            return len(node.received.spans) >= 2

        await eventually(told)
    told_of = {attributes_of(span.attributes)["turnledger.reason"]: span for span in node.received.spans}
    for reason, code in wire.items():
        attributes = attributes_of(told_of[reason].attributes)
        assert attributes["rpc.response.status_code"] == attributes["error.type"] == code.name
        assert told_of[reason].status.code == Status.STATUS_CODE_ERROR


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many"),
        ("OTEL_TRACES_SAMPLER", "no_such_sampler"),
        pytest.param("OTEL_BSP_MAX_QUEUE_SIZE", "many", marks=pytest.mark.slow),
        pytest.param("OTEL_METRIC_EXPORT_INTERVAL", "often", marks=pytest.mark.slow),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "tight"),
        pytest.param("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", marks=pytest.mark.slow),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "not a place"),
        pytest.param("OTEL_RESOURCE_ATTRIBUTES", "=,=;%%%", marks=pytest.mark.slow),
        pytest.param("OTEL_TRACES_EXPORTER", "zipkin", marks=pytest.mark.slow),
    ],
)
async def test_a_wrong_variable_keeps_no_sidecar(tmp_path: Path, variable: str, value: str) -> None:
    """Whatever a variable of OpenTelemetry holds, the sidecar starts, serves and ends with 0."""
    async with _node(tmp_path, **{variable: value}) as node:
        assert (await node.caller.record.Append(asking.append())).disposition == record_pb2.DISPOSITION_RECORDED
        node.sidecar.send(signal.SIGTERM)
        assert await node.sidecar.ended() == 0


async def test_none_asked_for_is_none_sent(tmp_path: Path) -> None:
    """`none` and OTEL_SDK_DISABLED turn signals off, each by itself and all together."""
    async with _node(tmp_path, OTEL_TRACES_EXPORTER="none", OTEL_LOGS_EXPORTER="none") as node:
        await node.caller.render.UserMessage(asking.user_message())

        async def measured() -> bool:
            return "rpc.server.call.duration" in node.received.metrics

        await eventually(measured)
        assert (node.received.spans, node.received.records) == ([], [])
    async with _node(tmp_path, OTEL_SDK_DISABLED="true") as off:
        await off.caller.render.UserMessage(asking.user_message())
        await asyncio.sleep(0.5)
        assert not any(off.received.requests.values())


async def test_an_exporter_without_an_endpoint_goes_to_the_standards(tmp_path: Path) -> None:
    """OTLP that is asked for by name goes to the standard's default, which the log says; nothing else is exported."""
    variables = {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_METRICS_EXPORTER": "console"}
    async with process(f"unix://{tmp_path}/s", store=tmp_path / "store.db", variables=variables) as one:
        await one.says("no endpoint is given for traces: they go to the standard's default, http://localhost:4317")
        await one.says("metrics are exported by OTLP alone, and the variables ask for console")
        await one.says("the store is open")
        one.send(signal.SIGTERM)
        assert await one.ended() == 0
    assert "endpoint is given for metrics" not in one.log
    assert "endpoint is given for logs" not in one.log


async def test_a_changed_file_is_counted(tmp_path: Path) -> None:
    """What came of each changed settings file is a count by outcome, and a broken one makes its component unwell."""
    file = tmp_path / "settings.yaml"
    file.write_text("turn_engine: {conversation_session: {enabled: true}}")
    async with receiving() as received:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": received.target, **OFTEN, "TURNLEDGER_CONFIG": str(file)}
        async with process(f"unix://{tmp_path}/s", store=tmp_path / "store.db", variables=variables) as one:
            await one.says("the store is open")
            for text in ("turn_engine: {conversation_session: {enabled: false}}", "sidecar: {lisen: x}"):
                file.write_text(text)
                one.send(signal.SIGHUP)
                await asyncio.sleep(0.3)

            async def counted() -> bool:
                metric = received.metrics.get("turnledger.reloads")
                points = points_of(metric) if metric else []
                outcomes = {attributes_of(point.attributes)["turnledger.reload.outcome"] for point in points}
                return outcomes == {"applied", "broken"}

            await eventually(counted)


def test_the_clients_instruments_are_documented() -> None:
    """The page's table of the client names exactly the instruments that the client makes."""
    source = Path(turnledger.otel.__file__).read_text()
    made = set(re.findall(r'"((?:turnledger|rpc)\.client\.[a-z_.]+)"', source))
    documented = {cells[0].strip("`") for cells in table.rows("Client")}
    assert documented == made


def test_a_history_of_this_page() -> None:
    """The page's tables are read as they are meant."""
    assert table.metrics()["rpc.server.request.size"] == table.metrics()["rpc.server.call.duration"]
    assert "turnledger.client.reads" not in table.metrics()
    assert render_pb2.PHASE_EXECUTE
