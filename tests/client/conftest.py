"""Both shells behind one face, so that each promise is tested for both by one test."""

import asyncio
import inspect
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from turnledger import BlockingLedger, BlockingTurn, Ledger

from tests.client.scripted_sidecar import Open


class Threaded:
    """A blocking object whose methods run in threads, to be awaited."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if not inspect.ismethod(attribute) or name in ("called", "save"):
            return attribute
        if name == "resume":
            return lambda saved: Threaded(attribute(saved))

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            came = await asyncio.to_thread(attribute, *args, **kwargs)
            return Threaded(came) if isinstance(came, BlockingTurn) else came

        return awaited


@pytest.fixture(params=["asyncio", "blocking"])
def opened(request: pytest.FixtureRequest) -> Open:
    """Opens a ledger of one shell or the other: `async with opened(target, ...) as ledger`."""

    @asynccontextmanager
    async def open_ledger(target: str, **options: Any) -> AsyncIterator[Any]:
        if request.param == "asyncio":
            async with Ledger(target, **options) as ledger:
                yield ledger
        else:
            with BlockingLedger(target, **options) as blocking:
                try:
                    yield Threaded(blocking)
                finally:
                    # The test's own servers run in this event loop, and closing may wait for them.
                    await asyncio.to_thread(blocking.close)

    return open_ledger


@pytest.fixture
def socket() -> Iterator[str]:
    """The path of a socket that nobody listens on yet, short enough for the kernel."""
    with tempfile.TemporaryDirectory(prefix="tl-") as folder:
        yield str(Path(folder) / "s")


@pytest.fixture
def target(socket: str) -> str:
    """The socket as a target."""
    return f"unix:{socket}"
