"""An engine with OpenTelemetry's SDK, for `tools.otel_proof`: turns of every kind, until it is ended."""

import asyncio
import itertools
import sys

from opentelemetry import _logs, metrics, trace
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from turnledger import CallKind, Deadlines, Ledger, Order, Phase, Reply, Unsent

POLITE = "You are polite. " * 20
LONG = "the parcel was scanned at the depot and left again " * 8


def _rewrite(order: Order) -> str:
    return "the parcel was scanned" if order.attempt == 1 else ""


async def _turn(ledger: Ledger, number: int) -> None:
    seat = ("support", "billing", "sales")[number % 3]
    with trace.get_tracer("engine").start_as_current_span("turn"):
        turn = await ledger.begin(
            agent_handle=seat,
            conversation_key=f"jira:POC-{number % 7}",
            turn_id=f"run-{number:08}",
            work_key="" if number % 11 == 0 else f"work-{number - number % 13 % 2}",
        )
        for iteration in range(2):
            await turn.user_message(
                phase=Phase.EXECUTE, task=f"Where is order {number}?", context="You are polite." * 20
            )
            turn.called("get_order", f'{{"order": {number + iteration}}}', kind=CallKind.READ)
        await turn.user_message(phase=Phase.REVIEW, task="Was it polite?")
        turn.called("send", f'{{"text": "{LONG}"}}', error=LONG if number % 5 == 0 else None)
        outcome = Unsent("It ships.") if number % 9 == 0 else Reply(f"It ships on Friday. {LONG * 4}")
        await turn.complete(outcome, trigger=f"Where is order {number}?")
    if number % 9 == 0:
        await ledger.settle(agent_handle=seat, conversation_key=f"jira:POC-{number % 7}", work_key=f"work-{number}")


async def _broken(ledger: Ledger, nobody: Ledger, number: int) -> None:
    """What goes wrong: a request that is refused, and a sidecar that is not there."""
    refused = await ledger.begin(agent_handle="", conversation_key="c", turn_id="t", work_key="w")
    await refused.complete(Reply("x"), trigger="t")
    alone = await nobody.begin(agent_handle="a", conversation_key="c", turn_id=f"t-{number}", work_key="w")
    await alone.user_message(phase=Phase.EXECUTE, task="Anybody?")
    await alone.complete(Reply("x"), trigger="t")


async def main(target: str) -> None:
    """Turns, a few each second."""
    hasty = Deadlines(begin=0.2, user_message=0.1, complete=0.2)
    async with Ledger(target, rewriter=_rewrite) as ledger, Ledger(f"{target}-not-there", deadlines=hasty) as nobody:
        for number in itertools.count(1):
            await _turn(ledger, number)
            if number % 10 == 0:
                await _broken(ledger, nobody, number)
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())]))
    loggers = LoggerProvider()
    loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    _logs.set_logger_provider(loggers)
    asyncio.run(main(sys.argv[1]))
