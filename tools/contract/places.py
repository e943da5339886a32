"""Sidecars for the page's examples, as processes: well, misconfigured, or with a store that cannot serve."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import apsw

from tests.support.patience import eventually
from tests.support.running import Process, calling, free_port, process
from tools.conformance.sidecars import read_of

#: The reason that each state answers with, once it is reached; none where it serves.
STATES: Final = {
    "": "",
    "misconfigured": "CONFIG_INVALID",
    "held": "STORE_UNAVAILABLE",
    "corrupt": "STORE_CORRUPT",
    "newer": "STORE_NEWER",
}


@asynccontextmanager
async def sidecar_that_is(state: str, listen: str, folder: Path) -> AsyncIterator[None]:
    """A sidecar in this state at the address, its files in `folder`. Raises KeyError at a state that is none."""
    reason = STATES[state]
    store = folder / "store.db"
    settings = folder / "settings.yaml"
    entries = 0 if state == "misconfigured" else 20
    settings.write_text(json.dumps({"turn_engine": {"conversation_session": {"max_entries": entries}}}))
    async with AsyncExitStack() as running:
        if state == "corrupt":
            store.write_bytes(b"This is no database. " * 1000)
        if state in ("held", "newer"):
            other = await running.enter_async_context(_serving(f"unix://{folder}/other", store))
            await _reaches(other, "")
        if state == "newer":
            await running.aclose()
            _change_as_a_later_version_would(store)
        one = await running.enter_async_context(_serving(listen, store, "--config", str(settings)))
        await _reaches(one, reason)
        yield


@asynccontextmanager
async def _serving(listen: str, store: Path, *options: str) -> AsyncIterator[Process]:
    health = {"TURNLEDGER_HEALTH": f"127.0.0.1:{free_port()}"}
    async with process(listen, *options, store=store, variables=health) as one:
        yield one


def _change_as_a_later_version_would(store: Path) -> None:
    with apsw.Connection(str(store)) as db:
        db.execute("INSERT INTO schema_migrations VALUES (9999, 'of_a_later_version', '', 0)")
    db.close()


async def _reaches(one: Process, reason: str) -> None:
    async with calling(one.target) as caller:

        async def reached() -> bool:
            return await read_of(caller) == reason

        await eventually(reached)
