"""Which turns are for the ledger: every combination against the table of precedence."""

from itertools import product
from typing import Final

import pytest

from sidecar.domain.eligibility import Conversation, RunEnd, SkipReason, TurnKey, skip_reason
from sidecar.domain.errors import Code, LedgerError, Violation

#: In order of precedence; FORGOTTEN, the last, is the store's to say.
_TABLE: Final = ("disabled", "run_crashed", "run_suspended", "not_reproducible", "no_work_key")

_CASES: Final = list(product([True, False], RunEnd, ["jira:POC-7", "event:1", "event:"], ["k", ""]))


@pytest.mark.parametrize(("enabled", "run_end", "conversation", "work_key"), _CASES)
def test_precedence(enabled: bool, run_end: RunEnd, conversation: str, work_key: str) -> None:
    """The first reason of the table that holds is given; a turn with none is for the ledger."""
    holds = {
        "disabled": not enabled,
        "run_crashed": run_end.value == "crashed",
        "run_suspended": run_end.value == "suspended",
        "not_reproducible": conversation[:6] == "event:",
        "no_work_key": work_key == "",
    }
    expected = next((reason for reason in _TABLE if holds[reason]), None)
    reason = skip_reason(TurnKey(Conversation("seat", conversation), work_key), run_end, enabled=enabled)
    assert reason == (SkipReason(expected) if expected else None)


@pytest.mark.parametrize("conversation", ["events:1", "Event:1", " event:1", "slack:event:1", "event"])
def test_only_the_prefix(conversation: str) -> None:
    """Only a conversation that begins with `event:`, byte for byte, is one that nothing can come back to."""
    key = TurnKey(Conversation("seat", conversation), "k")
    assert skip_reason(key, RunEnd.COMPLETED, enabled=True) is None


@pytest.mark.parametrize("seat", ["event:1", ""])
def test_the_seat_does_not_matter(seat: str) -> None:
    """A seat's name makes no turn ineligible."""
    assert skip_reason(TurnKey(Conversation(seat, "a:b"), " "), RunEnd.COMPLETED, enabled=True) is None


def test_the_reasons_are_in_order() -> None:
    """The reasons are declared in their order of precedence, FORGOTTEN last."""
    assert [reason.value for reason in SkipReason] == [*_TABLE, "forgotten"]


def test_an_expected_failure() -> None:
    """The one error type carries its code, a message that is safe to show, and the fields that break a rule."""
    error = LedgerError(Code.INVALID, "some fields break a rule", [Violation("turn_id", "must not be empty")])
    assert (error.code, error.message, str(error)) == ("INVALID", "some fields break a rule", error.message)
    assert error.violations == (Violation("turn_id", "must not be empty"),)
    assert LedgerError(Code.INTERNAL, "x").violations == ()
