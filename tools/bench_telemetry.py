"""What telemetry costs an Append: `python -m tools.bench_telemetry`, side by side, interleaved.

Four sidecars, each a process with a store of its own: telemetry off, metrics alone, one span in a hundred, every span.
Callers in processes of their own append turns of about 2 KB with four calls, and name a trace; a receiver in another
process takes what is exported. Ratios travel between machines, rates do not.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
import uvloop
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from turnledger.v1 import entry_pb2

from tests.support import asking
from tests.support.running import free_port

_TREE: Final = Path(__file__).parents[1]
_SIDECARS: Final[dict[str, dict[str, str]]] = {
    "off": {},
    "metrics": {"OTEL_TRACES_EXPORTER": "none"},
    "1 %": {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"},
    "all": {},
}


def main() -> None:
    """Run the rounds and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callers", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each sidecar in each round")
    parser.add_argument("--role", choices=["receiver", "callers"], help=argparse.SUPPRESS)
    parser.add_argument("--target", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "receiver":
        uvloop.run(_receive(options.target))
    elif options.role == "callers":
        print(uvloop.run(_append(options.target, options.callers, options.seconds, options.first)))
    else:
        _compare(options.callers, options.rounds, options.seconds)


def _compare(callers: int, rounds: int, seconds: float) -> None:
    port = free_port()
    rates: dict[str, list[float]] = {name: [] for name in _SIDECARS}
    with tempfile.TemporaryDirectory(prefix="tl-bench-") as folder, ExitStack() as stack:
        stack.enter_context(
            _running(["-m", "tools.bench_telemetry", "--role", "receiver", "--target", f"127.0.0.1:{port}"])
        )
        targets = {}
        for number, (name, variables) in enumerate(_SIDECARS.items()):
            endpoint = {} if name == "off" else {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}
            targets[name] = f"unix:{folder}/{number}"
            serve = [
                "-m",
                "sidecar",
                "serve",
                "--listen",
                f"unix://{folder}/{number}",
                "--store",
                f"{folder}/{number}.db",
            ]
            stack.enter_context(_running(serve, {**endpoint, **variables, "TURNLEDGER_HEALTH": "127.0.0.1:0"}))
        time.sleep(2)
        for number in range(rounds):
            for name, target in targets.items():
                rates[name].append(_round(target, callers, seconds, number * 1_000_000))
    print(f"{callers} callers, {rounds} rounds of {seconds} s, Appends a second: median (least..most), of off (median)")
    for name, found in rates.items():
        ratio = statistics.median(each / off for each, off in zip(found, rates["off"], strict=True))
        print(f"{name:8} {statistics.median(found):7.0f} ({min(found):.0f}..{max(found):.0f})  {ratio:.3f}")


def _round(target: str, callers: int, seconds: float, first: int) -> float:
    role = ["--role", "callers", "--target", target, "--callers", str(callers)]
    command = [sys.executable, "-m", "tools.bench_telemetry", *role, "--seconds", str(seconds), "--first", str(first)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_TREE, env=_environment({}))
    return float(done.stdout)


async def _append(target: str, callers: int, seconds: float, first: int) -> float:
    """Appends a second, by so many callers on one channel."""
    numbers = iter(range(first, first + 1_000_000))
    done = 0
    async with grpc.aio.insecure_channel(target) as channel:
        append: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/turnledger.v1.Record/Append", None, None
        )
        until = time.perf_counter() + seconds

        async def call() -> None:
            nonlocal done
            while time.perf_counter() < until:
                traced = (("traceparent", f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01"),)
                await append(_turn(next(numbers)), metadata=traced)
                done += 1

        await asyncio.gather(*(call() for _ in range(callers)))
    return done / seconds


def _turn(number: int) -> bytes:
    arguments = json.dumps({"path": f"src/module_{number}.py", "note": "x" * 90})
    calls = [
        entry_pb2.ToolCall(name=f"tool_{each}", arguments=arguments, kind=entry_pb2.CALL_KIND_WRITE)
        for each in range(4)
    ]
    entry = asking.entry(trigger="a" * 500, reply="p" * 700, calls=calls)
    return asking.append(f"w{number}", conversation_key=f"c{number % 500}", entry=entry).SerializeToString()


async def _receive(target: str) -> None:
    """Take what is exported, and keep nothing of it."""
    server = grpc.aio.server()
    answers = {
        "trace": trace_service_pb2.ExportTraceServiceResponse(),
        "metrics": metrics_service_pb2.ExportMetricsServiceResponse(),
        "logs": logs_service_pb2.ExportLogsServiceResponse(),
    }
    for name, answer in answers.items():

        async def export(_data: bytes, _context: object, said: bytes = answer.SerializeToString()) -> bytes:
            return said

        service = f"opentelemetry.proto.collector.{name}.v1.{name.capitalize()}Service"
        handlers: dict[str, Any] = {"Export": grpc.unary_unary_rpc_method_handler(export)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    server.add_insecure_port(target)
    await server.start()
    await server.wait_for_termination()


def _environment(variables: dict[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    path = os.pathsep.join([str(_TREE), str(_TREE / "clients" / "python")])
    return {**inherited, **variables, "PYTHONPATH": path}


@contextmanager
def _running(arguments: list[str], variables: dict[str, str] | None = None) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=_TREE, env=_environment(variables or {}), stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


if __name__ == "__main__":
    main()
