"""Short ids: at least 8 characters, and no two of a block alike."""

import json
import uuid

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sidecar.domain.entry import short_ids
from tests.domain.making import PLAIN, block
from tests.domain.strategies import turn_ids


def _bare(shown: str) -> str:
    return str(json.loads(shown)) if shown.startswith('"') else shown


@given(st.lists(st.one_of(turn_ids, st.text("ab", max_size=14), st.text("ab", min_size=9, max_size=10)), max_size=20))
def test_unique_and_short(ids: list[str]) -> None:
    """Each id is shown by a prefix of itself, of 8 characters or the whole of it, no two ids by the same."""
    shown = short_ids(ids)
    assert set(shown) == set(ids)
    assert len(set(shown.values())) == len(set(ids))
    for turn_id, short in shown.items():
        assert turn_id.startswith(_bare(short))
        assert len(_bare(short)) >= min(8, len(turn_id))


@given(st.lists(turn_ids, max_size=12))
def test_no_longer_than_needed(ids: list[str]) -> None:
    """An id is shown longer than 8 characters only where a character less would begin another one too."""
    shown = {turn_id: _bare(short) for turn_id, short in short_ids(ids).items()}
    for turn_id, short in shown.items():
        if len(short) > 8:
            assert any(other.startswith(short[:-1]) for other in shown if other != turn_id)


def test_time_ordered_ids() -> None:
    """Time-ordered ids of one minute are told apart, in whatever order they come."""
    ids = [str(uuid.UUID(int=(0x0192F0C1_0000 + place) << 80 | 7 << 76)) for place in (5, 1, 300, 0x11)]
    shown = short_ids(ids)
    assert [shown[turn_id] for turn_id in ids] == ["0192f0c1-0005", "0192f0c1-0001", "0192f0c1-01", "0192f0c1-001"]


def test_ids_that_begin_one_another() -> None:
    """An id that begins another is shown whole, the other with a character more."""
    assert short_ids(["abcdefgh", "abcdefghi", "abcdefghij"]) == {
        "abcdefgh": "abcdefgh",
        "abcdefghi": "abcdefghi",
        "abcdefghij": "abcdefghij",
    }


def test_far_apart() -> None:
    """Ids that differ within 8 characters are shown by 8."""
    assert short_ids(["abcdefgh-1", "abcdefgX-1"]) == {"abcdefgh-1": "abcdefgh", "abcdefgX-1": "abcdefgX"}
    assert short_ids([]) == {}


def test_one_id_twice() -> None:
    """Two entries of one run have one short id."""
    assert block([PLAIN, PLAIN]).text.count("(turn 0a1b2c3d)") == 2


def test_short_ids_in_an_account() -> None:
    """Ids are unique over the whole block, the account's among them."""
    older, newest = replace(PLAIN, turn_id="abcdefgh1", trigger="x" * 7_000), replace(PLAIN, trigger="x" * 19_000)
    shown = block([older, replace(newest, turn_id="abcdefgh2")]).text
    assert "- 2026-01-01T00:00:00Z (turn abcdefgh1):" in shown
    assert "### 2026-01-01T00:00:00Z (turn abcdefgh2)" in shown
