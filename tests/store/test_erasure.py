"""Erasure: after COMPLETE no byte of what was forgotten or trimmed is in any of the store's files."""

import random
import subprocess
from pathlib import Path

import pytest

from sidecar.domain.eligibility import Conversation
from sidecar.store.store import Store
from tests.support.patience import eventually
from tests.support.stores import CONVERSATION, SEAT, entry, key, no_traces, open_store, pinned, record, texts, traces

#: Long enough for overflow pages, of one word, so that any page that is left shows it.
NEEDLE = "qz7Xerase"
LONG = NEEDLE * 2_000


async def test_the_look_finds_what_is_there(store: Store, store_path: Path) -> None:
    """Before it is forgotten the text is in the files: the other tests look for something."""
    await record(store, key("a"), LONG)
    assert traces(store_path, NEEDLE.encode())


@pytest.mark.parametrize("scope", ["turn", "conversation", "seat"])
@pytest.mark.parametrize("size", [1, 300, 2_000])
async def test_forgotten_text_is_nowhere(store: Store, store_path: Path, scope: str, size: int) -> None:
    """Of a forgotten entry no file holds a byte: small ones, ones that fill a page, ones on overflow pages."""
    for number in range(12):
        name = f"w{number}-secretkey" if number % 2 else f"keep{number}"
        seat, conversation = (SEAT, CONVERSATION) if number % 2 else ("other", "kept")
        text = NEEDLE * size if number % 2 else "kept" * size
        await store.append(key(name, conversation, seat), entry(text, trigger=text, turn_id=name), f"id-{name}", 20)
    if scope == "turn":
        for number in range(1, 12, 2):
            await store.forget_turn(key(f"w{number}-secretkey"))
    elif scope == "conversation":
        await store.forget_conversation(Conversation(SEAT, CONVERSATION))
    else:
        await store.forget_seat(SEAT)
    assert await store.finish_erasure()
    assert traces(store_path, NEEDLE.encode()) == {}
    assert traces(store_path, b"-secretkey") == {}
    assert len(await texts(store, key("", "kept", "other"))) == 6


async def test_trimmed_text_is_nowhere(store: Store, store_path: Path) -> None:
    """Of a trimmed entry neither text nor turn id is left once the log is emptied."""
    for number in range(6):
        text = LONG if number < 4 else "kept"
        turn = entry(text, turn_id=f"run-{NEEDLE}" if number < 4 else "run-kept-1")
        await store.append(key(f"w{number}"), turn, f"id-{number}", 2)
    assert await store.finish_erasure()
    assert traces(store_path, NEEDLE.encode()) == {}
    assert await texts(store) == ["kept", "kept"]


async def test_settled_entry_is_forgotten_in_all_versions(store: Store, store_path: Path) -> None:
    """A former version of a settled entry leaves nothing behind."""
    await store.append(key("a"), entry(LONG, delivered=False), "id-a", 20)
    await store.settle(key("a"))
    await store.forget_turn(key("a"))
    assert await store.finish_erasure()
    assert traces(store_path, NEEDLE.encode()) == {}


@pytest.mark.parametrize("seed", range(4))
async def test_churn_leaves_nothing(store: Store, store_path: Path, seed: int) -> None:
    """Entries of many sizes that come, are trimmed and are forgotten leave nothing, whatever cells moved meanwhile."""
    chance = random.Random(seed)
    for number in range(150):
        text = NEEDLE * chance.randrange(1, chance.choice([60, 300, 700]))
        turn = key(f"{NEEDLE}{number}", f"{NEEDLE}-c{number % 7}", f"{NEEDLE}-s{number % 3}")
        await store.append(turn, entry(text), f"{NEEDLE}{number}", 3)
        if number % 4 == 0:
            await store.forget_turn(turn)
        await store.append(key(f"w{number}"), entry("kept" * chance.randrange(1, 100)), f"kept-{number}", 5)
    for seat in range(3):
        await store.forget_seat(f"{NEEDLE}-s{seat}")
    assert await store.finish_erasure()
    assert traces(store_path, NEEDLE.encode()) == {}
    assert len(await texts(store)) == 5
    assert (await store.check(lambda _: None)).sound


async def test_pinned_reader_makes_it_wait(store: Store, store_path: Path) -> None:
    """While another program's reader holds a snapshot erasure is pending; it completes once the reader lets go."""
    await record(store, key("a"), LONG)
    with pinned(store_path) as reader:
        await store.forget_turn(key("a"))
        assert not await store.finish_erasure()
        assert await texts(store) == []
        await record(store, key("b"), "written meanwhile")
        reader.execute("COMMIT")
        await eventually(lambda: no_traces(store_path, NEEDLE.encode()))
    assert await texts(store) == ["written meanwhile"]


async def test_pending_erasure_survives_a_restart(store_path: Path) -> None:
    """What a reader kept a former life from erasing is erased by the next one, with no further Forget."""
    async with open_store(store_path) as store:
        await record(store, key("a"), LONG)
        with pinned(store_path) as reader:
            await store.forget_turn(key("a"))
            assert not await store.finish_erasure()
            await store.close()
            assert traces(store_path, NEEDLE.encode())
            async with open_store(store_path) as again:
                reader.execute("COMMIT")
                await eventually(lambda: no_traces(store_path, NEEDLE.encode()))
                assert await texts(again) == []


async def test_log_of_a_former_life_is_emptied_at_open(store_path: Path) -> None:
    """Text that a killed process had forgotten, but not yet erased, is gone soon after the next start."""
    async with open_store(store_path) as store:
        await record(store, key("a"), LONG)
        await store.forget_turn(key("a"))
        copy = store_path.parent / "killed" / "store.db"
        copy.parent.mkdir()
        for suffix in ("", "-wal"):
            _copy(store_path.with_name(store_path.name + suffix), copy.with_name(copy.name + suffix))
    assert traces(copy, NEEDLE.encode())
    async with open_store(copy) as again:
        await eventually(lambda: no_traces(copy, NEEDLE.encode()))
        assert await texts(again) == []


def _copy(source: Path, target: Path) -> None:
    """By another process: to open and close a live store here would drop its locks."""
    subprocess.run(["/bin/cp", str(source), str(target)], check=True)
