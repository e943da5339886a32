"""Callers with 31 MB each, all at once, in a process of their own: `python -m tests.torture.crowd TARGET COUNT`."""

import asyncio
import json
import sys
from collections import Counter

import grpc.aio

from tests.support import asking
from tests.support.refusal import read_refusal
from tests.support.running import calling


async def crowd(target: str, count: int) -> Counter[str]:
    """What they are answered."""
    request = asking.append("crowd", conversation_key="crowd", entry=asking.entry(trigger="x" * 31_000_000))
    data = request.SerializeToString()
    answers: Counter[str] = Counter()

    async def one() -> None:
        async with calling(target) as caller:
            try:
                await caller.send("Record/Append", data)
                answers["OK"] += 1
            except grpc.aio.AioRpcError as error:
                answers[read_refusal(error).reason or f"{error.code().name} {error.details()}"] += 1

    await asyncio.gather(*(one() for _ in range(count)))
    return answers


if __name__ == "__main__":
    print(json.dumps(asyncio.run(crowd(sys.argv[1], int(sys.argv[2])))))
