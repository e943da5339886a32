"""What can be taken back and what cannot: upgrades, backups, and forgotten text."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from unittest import mock

from turnledger.v1 import record_pb2

from sidecar.store import migrate
from sidecar.store.restore import restore
from tests.support import asking
from tests.support.running import Caller, calling, settings, started
from tests.support.stores import pinned, traces
from tests.torture.experiment import Experiment, Finding, Say, Scale

_NEEDLE: Final = "qz7Xundo"


async def run(folder: Path, scale: Scale, say: Say) -> Sequence[Finding]:
    """Upgrades from each version, backups at random moments, erasure after churn."""
    findings = [await _upgrades(folder / "upgrades")]
    say("upgrades")
    findings.append(await _backups(folder / "backups", 1 if scale.quick else 10))
    say("backups")
    findings.append(await _erasures(folder / "erasures", 1 if scale.quick else 40, random.Random(scale.seed)))
    return findings


async def _fill(caller: Caller, turns: int, conversation: str = "jira:POC-7", text: str = "said") -> None:
    for number in range(turns):
        entry = asking.entry(reply=f"{text} {number} " * 30, turn_id=f"{number:08}-run")
        await caller.record.Append(asking.append(f"w{number}", conversation_key=conversation, entry=entry))


async def _block(caller: Caller, conversation: str = "jira:POC-7") -> str:
    return (await caller.render.History(asking.history(conversation_key=conversation))).history.text


async def _upgrades(folder: Path) -> Finding:
    broken = []
    shipped = migrate.shipped()
    for version in range(1, len(shipped) + 1):
        place = folder / str(version)
        place.mkdir(parents=True)
        with mock.patch("sidecar.store.database.shipped", lambda upto=version: shipped[:upto]):
            async with started(settings(place)) as app, calling(app.address.target) as caller:
                await _fill(caller, 12)
                before = await _block(caller)
        async with started(settings(place)) as app, calling(app.address.target) as caller:
            again = await caller.record.Append(asking.append("w3"))
            if await _block(caller) != before:
                broken.append(f"a store of version {version} answers otherwise once it is upgraded")
            if again.disposition != record_pb2.DISPOSITION_DUPLICATE:
                broken.append(f"a turn of version {version} was recorded twice")
    return Finding(
        "A store of each schema version is upgraded and answers the same bytes", f"{len(shipped)} versions", broken
    )


async def _backups(folder: Path, rounds: int) -> Finding:
    """A backup in a fresh sidecar's place answers the same; what was forgotten since stays forgotten."""
    broken = []
    for number in range(rounds):
        place, fresh = folder / f"{number}", folder / f"{number}-fresh"
        for each in (place, fresh):
            each.mkdir(parents=True)
        async with started(settings(place)) as app, calling(app.address.target) as caller:
            await _fill(caller, 15)
            await _fill(caller, 3, "private", _NEEDLE)
            before = await _block(caller)
            await app._store.backup(folder / f"{number}.db", lambda _: None)
            await caller.record.Forget(asking.forget_conversation(conversation="private"))
        restore(folder / f"{number}.db", fresh / "store.db", 0, lambda _: None, forget_unknown=True)
        restored = restore(folder / f"{number}.db", place / "store.db", 0, lambda _: None)
        if restored.forgotten_again != 3:
            broken.append(f"{restored.forgotten_again} turns were forgotten again, expected 3")
        if left := traces(place / "store.db", _NEEDLE.encode()):
            left.pop(Path(restored.aside).name, None)  # the store that was replaced holds none either
            broken += [f"forgotten text came back into {name}" for name in left]
        async with started(settings(fresh)) as app, calling(app.address.target) as caller:
            if await _block(caller) != before:
                broken.append("a restored backup answers otherwise")
        async with started(settings(place)) as app, calling(app.address.target) as caller:
            again = await caller.record.Append(asking.append("w1", conversation_key="private"))
            if again.skip_reason != record_pb2.SKIP_REASON_FORGOTTEN or await _block(caller) != before:
                broken.append("a redelivery brought a forgotten turn back after a restore")
    return Finding(
        "A backup restored into a fresh sidecar answers the same bytes; what was forgotten since stays forgotten",
        f"{rounds} backups of 18 turns",
        broken,
    )


async def _erasures(folder: Path, rounds: int, chance: random.Random) -> Finding:
    """After churn, with and without a reader that holds a snapshot, no byte of what was forgotten is in any file."""
    broken = []
    turns = 0
    for number in range(rounds):
        place = folder / str(number)
        place.mkdir(parents=True)
        async with started(settings(place)) as app, calling(app.address.target) as caller:
            turns += await _churn(caller, chance)
            with pinned(place / "store.db") as reader:
                pending = await caller.record.Forget(asking.forget_seat(f"{_NEEDLE}-seat"))
                if pending.erasure != record_pb2.ERASURE_PENDING:
                    broken.append("erasure was called complete while a reader held what was erased")
                reader.execute("COMMIT")
            for _ in range(100):
                if not (left := await asyncio.to_thread(traces, place / "store.db", _NEEDLE.encode())):
                    break
                await asyncio.sleep(0.1)
            broken += [f"forgotten text is in {name}" for name in left]
            again = await caller.record.Append(
                asking.append("w0", agent_handle=f"{_NEEDLE}-seat", conversation_key=f"{_NEEDLE}-0")
            )
            if again.skip_reason != record_pb2.SKIP_REASON_FORGOTTEN:
                broken.append("a redelivery brought a forgotten turn back")
    return Finding(
        "Forgotten text and keys are nowhere in the files, searched byte by byte, once a reader that held them is gone",
        f"{rounds} stores, {turns} turns of random sizes among others, one reader each",
        broken,
    )


async def _churn(caller: Caller, chance: random.Random) -> int:
    turns = 120
    for number in range(turns):
        text = _NEEDLE * chance.randrange(1, chance.choice([60, 300, 700]))
        entry = asking.entry(reply=text, turn_id=f"{_NEEDLE}-{number}")
        keys = {"agent_handle": f"{_NEEDLE}-seat", "conversation_key": f"{_NEEDLE}-{number % 5}"}
        await caller.record.Append(asking.append(f"w{number}", entry=entry, **keys))
        other = asking.entry(reply="kept " * chance.randrange(1, 300))
        await caller.record.Append(asking.append(f"k{number}", conversation_key=f"c{number % 3}", entry=other))
    return turns


EXPERIMENT: Final = Experiment("undo", "upgrades, backups, and what is left of forgotten text", run)
