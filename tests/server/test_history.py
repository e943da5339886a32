"""History over the wire: states, counts, digest, limits, and what a turn that begins needs to know."""

import hashlib
from pathlib import Path

import pytest
from turnledger.v1 import entry_pb2, render_pb2

from sidecar.config.settings import ConversationSession
from tests.support import asking
from tests.support.running import Caller, running, settings
from tests.support.stores import beside

PRESENT = render_pb2.HISTORY_STATE_PRESENT
EMPTY = render_pb2.HISTORY_STATE_EMPTY
DISABLED = render_pb2.HISTORY_STATE_DISABLED

NOTHING_IN_IT = {
    "text": "",
    "digest": hashlib.sha256(b"").hexdigest(),
    "bytes": 0,
    "shown": 0,
    "condensed": 0,
    "left_out": 0,
    "no_longer_kept": 0,
    "unreadable": 0,
}


async def _fill(caller: Caller, turns: int, size: int = 10, **keys: str) -> None:
    for number in range(turns):
        turn = asking.entry(reply=f"reply {number} " + "x" * size, turn_id=f"{number:04}-turn-id")
        await caller.record.Append(asking.append(f"w{number}", entry=turn, **keys))


async def _read(caller: Caller, **changes: object) -> render_pb2.History:
    return (await caller.render.History(asking.history(**changes))).history


async def test_nothing_there_is_empty(caller: Caller) -> None:
    """A conversation without turns is EMPTY, with nothing in it."""
    answer = await caller.render.History(asking.history())
    assert answer.history == render_pb2.History(state=EMPTY, **NOTHING_IN_IT)  # type: ignore[arg-type]
    assert not answer.already_recorded
    assert not answer.orders


async def test_present_block_and_its_sizes(caller: Caller) -> None:
    """A block goes from its heading to no line break, with the digest and size of exactly its bytes."""
    await _fill(caller, 3)
    history = await _read(caller)
    assert history.state == PRESENT
    assert history.text.startswith("## Earlier in this conversation\n")
    assert not history.text.endswith("\n")
    assert history.digest == hashlib.sha256(history.text.encode()).hexdigest()
    assert history.bytes == len(history.text.encode())
    assert (history.shown, history.condensed, history.left_out) == (3, 0, 0)
    places = [history.text.index(f"| reply {number} ") for number in range(3)]
    assert places == sorted(places)


async def test_same_bytes_each_time(caller: Caller) -> None:
    """Two reads with nothing in between answer the same bytes."""
    await _fill(caller, 5, 2_000)
    assert await _read(caller) == await _read(caller)


async def test_switched_off_reads_nothing(tmp_path: Path) -> None:
    """Switched off the state is DISABLED, with nothing in it, also for a turn that is recorded."""
    async with running(settings(tmp_path)) as caller:
        await _fill(caller, 1)
    async with running(settings(tmp_path, session=ConversationSession(enabled=False))) as caller:
        answer = await caller.render.History(asking.history(work_key="w0"))
        assert answer.history == render_pb2.History(state=DISABLED, **NOTHING_IN_IT)  # type: ignore[arg-type]
        assert not answer.already_recorded


async def test_already_recorded(tmp_path: Path) -> None:
    """A work key is already recorded where its turn is there, trimmed or not, for this seat and conversation alone."""
    async with running(settings(tmp_path, session=ConversationSession(max_entries=1))) as caller:
        await _fill(caller, 2)
        asked = [{"work_key": each} for each in ("w0", "w1", "w2", "", "W0")]
        asked += [{"work_key": "w0", "agent_handle": "other"}, {"work_key": "w0", "conversation_key": "other"}]
        found = [(await caller.render.History(asking.history(**each))).already_recorded for each in asked]
        assert found == [True, True, False, False, False, False, False]
        await caller.record.Forget(asking.forget_turn("w0"))
        assert not (await caller.render.History(asking.history(work_key="w0"))).already_recorded


async def test_trimmed_turns_are_counted(tmp_path: Path) -> None:
    """Turns that are no longer kept are counted and said; forgotten ones are not."""
    async with running(settings(tmp_path, session=ConversationSession(max_entries=2))) as caller:
        await _fill(caller, 5)
        history = await _read(caller)
        assert (history.shown, history.no_longer_kept) == (2, 3)
        assert "3 earlier turn(s) are no longer kept" in history.text
        await caller.record.Forget(asking.forget_turn("w0"))
        assert (await _read(caller)).no_longer_kept == 2
        await caller.record.Forget(asking.forget_conversation())
        assert (await _read(caller)).state == EMPTY


async def test_nothing_kept_any_more_is_still_said(tmp_path: Path) -> None:
    """Where only trimmed turns are left, the block says so instead of passing for an empty history."""
    async with running(settings(tmp_path, session=ConversationSession(max_entries=1))) as caller:
        await _fill(caller, 3)
        await caller.record.Forget(asking.forget_turn("w2"))
        history = await _read(caller)
        assert (history.state, history.shown, history.no_longer_kept) == (PRESENT, 0, 2)
        assert "2 earlier turn(s) are no longer kept" in history.text


async def test_lowered_max_entries_shows_less_at_once(tmp_path: Path) -> None:
    """A smaller `max_entries` shows fewer turns before anything is written."""
    async with running(settings(tmp_path)) as caller:
        await _fill(caller, 6)
    async with running(settings(tmp_path, session=ConversationSession(max_entries=2))) as caller:
        history = await _read(caller)
        assert (history.shown, history.no_longer_kept) == (2, 4)


async def test_unreadable_row_is_counted(tmp_path: Path) -> None:
    """One damaged row is counted and said, the others are shown."""
    async with running(settings(tmp_path)) as caller:
        await _fill(caller, 3)
        with beside(tmp_path / "store.db") as db:
            db.execute("UPDATE conversation_sessions SET entry = x'00' WHERE work_key = 'w1'")
        history = await _read(caller)
        assert (history.shown, history.unreadable, history.no_longer_kept) == (2, 1, 0)
        assert "1 earlier turn(s) could not be read" in history.text
        assert "reply 1 " not in history.text


async def test_counts_cover_every_turn(caller: Caller) -> None:
    """Over the bound each turn is shown, condensed or left out, and the parts say how many."""
    await _fill(caller, 20, 3_000)
    history = await _read(caller)
    assert history.shown + history.condensed + history.left_out == 20
    assert history.shown == history.text.count("You replied:")
    assert history.condensed > 0
    assert history.bytes < 24_000 + 2_000


@pytest.mark.parametrize("limit", [4_096, 5_000, 20_000])
@pytest.mark.parametrize("size", [300, 40_000])
async def test_hard_limit_is_kept(caller: Caller, limit: int, size: int) -> None:
    """A block keeps a caller's hard limit, and still holds the newest turn."""
    await _fill(caller, 12, size)
    history = await _read(caller, hard_limit_bytes=limit)
    assert history.bytes <= limit
    assert history.shown >= 1
    assert "(turn 0011-tur" in history.text
    assert history.shown + history.condensed + history.left_out == 12


async def test_hard_limit_at_the_block_itself_changes_nothing(caller: Caller) -> None:
    """A limit of exactly the block's size, or no limit, gives the same bytes; one byte less names a field."""
    call = entry_pb2.ToolCall(name="look", arguments="{}")
    await caller.record.Append(asking.append(entry=asking.entry(reply="x" * 30_000, calls=[call])))
    whole = await _read(caller)
    assert await _read(caller, hard_limit_bytes=whole.bytes) == whole
    assert await _read(caller, hard_limit_bytes=2**64 - 1) == whole
    named = await _read(caller, hard_limit_bytes=whole.bytes - 1)
    assert named.bytes < whole.bytes
    assert "not shown, digest" in named.text
