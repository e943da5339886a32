"""Composition is concatenation, to the byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from turnledger.compose import Parts, approximate_tokens, compose
from turnledger.limits import HARD_LIMIT_FLOOR_BYTES, ID_BYTES, KEY_BYTES, MESSAGE_BYTES, TRANSPORT_BYTES

from sidecar.domain.limits import MAX_ENTRIES_DEFAULT
from tests.domain.strategies import hostile


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (Parts(), ""),
        (Parts(task="t"), "## Task\n\nt"),
        (Parts(context="c"), "c"),
        (Parts(history="## Earlier in this conversation\n\nh"), "## Earlier in this conversation\n\nh"),
        (Parts(prior_work="p"), "## Already done earlier in this turn\n\np"),
        (Parts("c", "", "t", ""), "c\n\n## Task\n\nt"),
        (Parts("c", "H", "t", "p"), "c\n\nH\n\n## Task\n\nt\n\n## Already done earlier in this turn\n\np"),
        (Parts("c\n", "", "\nt\n", " "), "c\n\n\n## Task\n\n\nt\n\n\n## Already done earlier in this turn\n\n "),
        (Parts("\r\n", "H", "\x00", ""), "\r\n\n\nH\n\n## Task\n\n\x00"),
    ],
)
def test_golden(parts: Parts, message: str) -> None:
    """Parts stand verbatim in their order under their headings, one blank line apart; empty ones are left out."""
    assert compose(parts) == message


@given(hostile, hostile, hostile)
def test_no_history_is_the_message_of_before(context: str, task: str, prior_work: str) -> None:
    """Without a history the message is byte for byte the one of before the ledger."""
    sections = [context] if context else []
    sections += [f"## Task\n\n{task}"] if task else []
    sections += [f"## Already done earlier in this turn\n\n{prior_work}"] if prior_work else []
    assert compose(Parts(context, "", task, prior_work)) == "\n\n".join(sections)


@given(hostile, hostile.filter(bool), hostile.filter(bool), hostile)
def test_a_history_is_one_insertion(context: str, history: str, task: str, prior_work: str) -> None:
    """A history is inserted before the task's heading, and changes no other byte."""
    without = compose(Parts(context, "", task, prior_work))
    place = len(f"{context}\n\n") if context else 0
    assert compose(Parts(context, history, task, prior_work)) == f"{without[:place]}{history}\n\n{without[place:]}"


@given(st.integers(0, 2**40))
def test_tokens(size: int) -> None:
    """Tokens are a quarter of the bytes, rounded up."""
    assert 4 * approximate_tokens(size) - 3 <= size <= 4 * approximate_tokens(size)


def test_limits() -> None:
    """The contract's limits are those that the contract states; the transport's leaves room for a reasoned refusal."""
    assert (MESSAGE_BYTES, KEY_BYTES, ID_BYTES, HARD_LIMIT_FLOOR_BYTES) == (32 * 1024**2, 512, 256, 4096)
    assert TRANSPORT_BYTES > MESSAGE_BYTES
    assert MAX_ENTRIES_DEFAULT == 20
