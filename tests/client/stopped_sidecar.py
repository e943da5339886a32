"""A sidecar in a process of its own, to be stopped or killed: `python -m tests.client.stopped_sidecar TARGET`."""

import asyncio
import sys

from tests.client.scripted_sidecar import Script, serving


async def main() -> None:
    """Serve until killed; says "ready" on standard output once it listens."""
    async with serving(Script(), sys.argv[1]):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
