"""The sweep: what is past retention goes and nothing else, between appends, and the disk gets its space back."""

import asyncio
import time
from pathlib import Path

import pytest

from sidecar.domain.eligibility import Disposition, SkipReason
from sidecar.store import sweep
from tests.support.stores import Clock, beside, key, no_traces, open_store, pinned, read, record, texts

OLD, NEW = 1_000_000, 2_000_000
BETWEEN = 1_500_000


async def test_rows_past_the_horizon_go(tmp_path: Path) -> None:
    """Old turns go, kept and trimmed ones alike; younger ones stay, and the history says how many are gone."""
    clock = Clock(OLD)
    async with open_store(tmp_path / "store.db", clock=clock) as store:
        for number in range(5):
            await record(store, key(f"old{number}"), "old", max_entries=3)
        clock.now = NEW
        await record(store, key("new"), "new", max_entries=3)
        swept = await store.sweep(BETWEEN, None)
        assert (swept.swept, swept.trimmed, swept.expired) == (5, 0, 0)
        assert await texts(store) == ["new"]
        assert (await read(store)).kept.no_longer_kept == 5
        assert (await store.sweep(BETWEEN, None)).swept == 0


async def test_a_row_of_the_horizon_itself_stays(tmp_path: Path) -> None:
    """Only what came before the horizon goes."""
    async with open_store(tmp_path / "store.db", clock=Clock(BETWEEN)) as store:
        await record(store, key("w"))
        assert (await store.sweep(BETWEEN, None)).swept == 0
        assert (await store.sweep(BETWEEN + 1, None)).swept == 1


async def test_the_order_of_recording_outlives_a_sweep(tmp_path: Path) -> None:
    """With a clock that leapt, a row in the middle goes; the others keep their order and their ordinals."""
    clock = Clock(NEW)
    async with open_store(tmp_path / "store.db", clock=clock) as store:
        for number, now in enumerate((NEW, OLD, NEW)):
            clock.now = now
            await record(store, key(f"w{number}"), f"t{number}")
        await store.sweep(BETWEEN, None)
        assert (await record(store, key("w3"), "t3")).ordinal == 4
        assert await texts(store) == ["t0", "t2", "t3"]
        assert (await read(store)).kept.no_longer_kept == 1


async def test_a_swept_turn_may_come_again(tmp_path: Path) -> None:
    """Past retention nothing of a turn is left, so its redelivery is a new turn, and the first of its conversation."""
    async with open_store(tmp_path / "store.db", clock=Clock(OLD)) as store:
        await record(store, key("w"))
        await store.sweep(BETWEEN, None)
        again = await record(store, key("w"))
        assert (again.disposition, again.ordinal) == (Disposition.RECORDED, 1)


async def test_forgotten_digests_expire(tmp_path: Path) -> None:
    """A forgotten turn stays forgotten until retention has passed since it was forgotten."""
    clock = Clock(OLD)
    async with open_store(tmp_path / "store.db", clock=clock) as store:
        await record(store, key("w"))
        await store.forget_turn(key("w"))
        assert (await record(store, key("w"))).skip_reason is SkipReason.FORGOTTEN
        assert (await store.sweep(OLD, None)).expired == 0
        assert (await store.sweep(BETWEEN, None)).expired == 1
        assert (await record(store, key("w"))).disposition is Disposition.RECORDED


async def test_a_lowered_bound_trims(tmp_path: Path) -> None:
    """Entries beyond `max_entries` go from every conversation; their rows stay, so a redelivery is a duplicate."""
    async with open_store(tmp_path / "store.db") as store:
        for conversation in ("a", "b"):
            for number in range(6):
                await record(store, key(f"w{number}", conversation), f"t{number}")
        await record(store, key("w", "c"), "alone")
        swept = await store.sweep(None, 2)
        assert (swept.swept, swept.trimmed) == (0, 8)
        assert await texts(store, key("", "b")) == ["t4", "t5"]
        assert await texts(store, key("", "c")) == ["alone"]
        assert (await record(store, key("w0", "a"))).disposition is Disposition.DUPLICATE


async def test_every_conversation_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More conversations than one read takes are trimmed all the same, and a key that is no text is passed over."""
    monkeypatch.setattr(sweep, "_CONVERSATIONS", 2)
    async with open_store(tmp_path / "store.db") as store:
        for conversation in "abcde":
            for number in range(3):
                await record(store, key(f"w{number}", conversation))
        with beside(tmp_path / "store.db") as db:
            spoiled = (
                "UPDATE conversation_sessions SET conversation_key = CAST(x'ff' AS TEXT) WHERE conversation_key = ?"
            )
            db.execute(spoiled, ("b",))
        assert (await store.sweep(None, 1)).trimmed == 8


async def test_space_goes_back_to_the_disk(tmp_path: Path) -> None:
    """After a sweep of most of a store its file is small again, its log empty, and the swept text nowhere."""
    path = tmp_path / "store.db"
    async with open_store(path, clock=Clock(OLD)) as store:
        for number in range(40):
            await record(store, key(f"w{number}"), "canary" * 20_000)
        assert await store.finish_erasure()  # all of it in the file
        before = path.stat().st_size
        swept = await store.sweep(BETWEEN, None)
        assert swept.swept == 40
        assert swept.log_is_empty
        assert path.stat().st_size < before / 3
        assert (await store.sizes()).log_bytes == 0
        assert await no_traces(path, b"canary")


async def test_a_pinned_reader_is_said(tmp_path: Path) -> None:
    """Where a foreign reader holds the log, the sweep ends all the same and says that the log is not empty."""
    async with open_store(tmp_path / "store.db", clock=Clock(OLD)) as store:
        await record(store, key("w"))
        with pinned(tmp_path / "store.db"):
            swept = await store.sweep(BETWEEN, None)
        assert (swept.swept, swept.log_is_empty) == (1, False)


async def test_appends_pass_between_the_batches(tmp_path: Path) -> None:
    """While thousands of rows are swept, turns are recorded, each soon."""
    clock = Clock(OLD)
    async with open_store(tmp_path / "store.db", clock=clock) as store:
        for start in range(0, 3_000, 500):  # fewer at once than may wait
            turns = (key(f"w{number}", f"c{number % 50}") for number in range(start, start + 500))
            await asyncio.gather(*(record(store, turn) for turn in turns))
        clock.now = NEW
        sweeping = asyncio.create_task(store.sweep(BETWEEN, None))
        waits: list[float] = []
        while not sweeping.done():
            began = time.monotonic()
            await record(store, key(f"n{len(waits)}", "new"), "new")
            waits.append(time.monotonic() - began)
        assert (await sweeping).swept == 3_000
        assert len(waits) > 10
        assert sorted(waits)[len(waits) // 2] < 0.1
        assert len(await texts(store, key("", "new"))) == min(len(waits), 500)
