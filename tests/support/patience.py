"""Waiting for what must happen soon, where there is no event to wait for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import grpc
import grpc.aio

T = TypeVar("T")

#: Seconds that a test waits for what must happen: far above what it takes, so that a slow machine does not fail it.
PATIENCE_S: Final = 15.0

_LOOKS_APART_S: Final = 0.05


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Look again and again until it holds."""
    for _ in range(int(PATIENCE_S / _LOOKS_APART_S)):
        if await holds():
            return
        await asyncio.sleep(_LOOKS_APART_S)
    raise AssertionError("it did not come about")


async def served(ask: Callable[[], Awaitable[T]], meanwhile: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> T:
    """Ask until there is an answer; until then no other status than `meanwhile` will do."""
    for _ in range(int(PATIENCE_S / _LOOKS_APART_S)):
        try:
            return await ask()
        except grpc.aio.AioRpcError as error:
            if error.code() is not meanwhile:
                raise
        await asyncio.sleep(_LOOKS_APART_S)
    raise AssertionError("it was never served")
