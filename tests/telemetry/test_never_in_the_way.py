"""Whatever the collector does, calls take what they take, the process ends in time, and what was dropped is counted."""

import asyncio
import signal
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support import asking
from tests.support.patience import eventually
from tests.support.running import Process, calling, free_port, process
from tests.telemetry.receiver import attributes_of, points_of, receiving

OFTEN = {"OTEL_METRIC_EXPORT_INTERVAL": "300", "OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_BLRP_SCHEDULE_DELAY": "50"}


@asynccontextmanager
async def _refusing() -> AsyncIterator[str]:
    """Nobody listens there."""
    yield f"http://127.0.0.1:{free_port()}"


@asynccontextmanager
async def _silent() -> AsyncIterator[str]:
    """Somebody accepts, and never says a word."""
    async with _listener(lambda _reader, _writer: asyncio.Event().wait()) as target:
        yield target


@asynccontextmanager
async def _babbling() -> AsyncIterator[str]:
    """Somebody answers with what is no HTTP/2."""

    async def babble(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 500 no\r\n\r\n" * 100)
        await writer.drain()

    async with _listener(babble) as target:
        yield target


@asynccontextmanager
async def _listener(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[object]],
) -> AsyncIterator[str]:
    accepted: set[asyncio.Task[object]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(_of(answer(reader, writer)))
        task.add_done_callback(lambda _: writer.transport.abort())
        accepted.add(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in accepted:
            task.cancel()
        await asyncio.gather(*accepted, return_exceptions=True)
        await asyncio.sleep(0.01)  # an aborted transport closes its socket in a later turn of the loop


async def _of(awaitable: Awaitable[object]) -> object:
    return await awaitable


COLLECTORS = {"refusing": _refusing, "silent": _silent, "babbling": _babbling}


@pytest.mark.parametrize("collector", COLLECTORS)
async def test_calls_take_what_they_take(tmp_path: Path, collector: str) -> None:
    """With a collector that is no use, Append takes about as long as without one (interleaved), and the end is soon."""
    off_folder, on_folder = tmp_path / "off", tmp_path / "on"
    off_folder.mkdir()
    on_folder.mkdir()
    async with (
        COLLECTORS[collector]() as endpoint,
        process(f"unix://{off_folder}/s", store=off_folder / "store.db") as off,
        process(
            f"unix://{on_folder}/s",
            store=on_folder / "store.db",
            variables={"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, **OFTEN},
        ) as on,
        calling(off.target) as off_caller,
        calling(on.target) as on_caller,
    ):
        for one in (off, on):
            await one.says("the store is open")
        took: dict[str, list[float]] = {"off": [], "on": []}
        for number in range(60):
            for name, caller in (("off", off_caller), ("on", on_caller)):
                began = time.perf_counter()
                await caller.record.Append(asking.append(f"w{number}"))
                took[name].append(time.perf_counter() - began)
        medians = {name: statistics.median(times) for name, times in took.items()}
        assert medians["on"] < 2 * medians["off"] + 0.001
        began = time.monotonic()
        on.send(signal.SIGTERM)
        assert await on.ended() == 0
        assert time.monotonic() - began < 5


async def test_what_does_not_fit_is_counted(tmp_path: Path) -> None:
    """A queue that is too small for what happens drops, and the metrics say how much; memory stays bounded by it."""
    small = {
        "OTEL_BSP_MAX_QUEUE_SIZE": "10",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "10",
        "OTEL_BSP_SCHEDULE_DELAY": "60000",
    }
    silent = f"http://127.0.0.1:{free_port()}"
    async with receiving() as received:
        variables = {
            **OFTEN,
            **small,
            "OTEL_BSP_SCHEDULE_DELAY": "60000",
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": received.target,
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": silent,
        }
        async with (
            process(f"unix://{tmp_path}/s", store=tmp_path / "store.db", variables=variables) as one,
            calling(one.target) as caller,
        ):
            await _load(one, caller.render.UserMessage)

            async def counted() -> bool:
                metric = received.metrics.get("otel.sdk.processor.span.processed")
                points = points_of(metric) if metric else []
                return any(
                    attributes_of(point.attributes).get("error.type") == "queue_full" and point.as_int > 0
                    for point in points
                )

            await eventually(counted)


async def _load(one: Process, ask: Callable[..., Awaitable[object]]) -> None:
    await one.says("the store is open")
    for _ in range(100):
        await ask(asking.user_message())
