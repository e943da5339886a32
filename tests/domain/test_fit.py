"""Judging a rewrite: each verdict, which comes first where several hold, and by how much one is over."""

import sys
import unicodedata
from typing import Final

import pytest
from hypothesis import given

from sidecar.domain.fit import Judgement, Verdict, judge
from sidecar.domain.instructions import OrderKind, before_text
from tests.domain.strategies import hostile

_LIMITS: Final = {OrderKind.ARGUMENT: 200, OrderKind.ERROR: 200, OrderKind.NOTE: 400}
_WHITE: Final = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
_INSTRUCTION: Final = "Add nothing: no identifier, number, link, @name or #channel that the text does not hold."

kinds: Final = pytest.mark.parametrize("kind", list(OrderKind))


def _verdict(original: str, rewrite: str, kind: OrderKind = OrderKind.NOTE) -> Verdict:
    return judge(kind, original, rewrite).verdict


@kinds
@pytest.mark.parametrize("unit", ["x", "é", "→", "😀"])
def test_the_limit_to_the_byte(kind: OrderKind, unit: str) -> None:
    """A rewrite of exactly the limit is accepted, and each byte over it is counted, however many bytes a sign takes."""
    size = len(unit.encode())
    at = unit * (_LIMITS[kind] // size) + "x" * (_LIMITS[kind] % size)
    assert judge(kind, "text", at) == Judgement(Verdict.ACCEPTED)
    assert judge(kind, "text", at + "x") == Judgement(Verdict.TOO_LONG, 1)
    assert judge(kind, "text", at + unit) == Judgement(Verdict.TOO_LONG, size)


@pytest.mark.parametrize("white", [*_WHITE, "\u200b", "\ufeff", "\u2060", "\u3164", "\u00ad", "\u2800", "\ufe0f", ""])
def test_nothing_to_see_is_empty(white: str) -> None:
    """White space of every kind, and what only looks like nothing, is no rewrite."""
    assert judge(OrderKind.ERROR, "text", white * 3) == Judgement(Verdict.EMPTY)
    assert judge(OrderKind.ERROR, "text", f"\n{white}\n") == Judgement(Verdict.EMPTY)


@pytest.mark.parametrize(
    "sign", [chr(code) for code in range(0xA0) if unicodedata.category(chr(code)) == "Cc" and chr(code) not in "\n\t"]
)
def test_control_characters(sign: str) -> None:
    """Of the control characters only line breaks and tabs are text, whatever the original holds."""
    assert _verdict(f"one{sign}two", f"one{sign}two") is Verdict.INVALID_TEXT
    assert _verdict("one two", "one\n\ttwo") is Verdict.ACCEPTED


@pytest.mark.parametrize("sign", [*"\u202a\u202e\u2066\u2069\u200e\u061c\u200b\u200d\u00ad\ufeff\ufffd", "\U000e0041"])
def test_what_hides_or_reorders(sign: str) -> None:
    """Signs that reorder, hide, or stand for lost text are accepted only where the original holds them."""
    assert _verdict("one two", f"one {sign}two") is Verdict.INVALID_TEXT
    assert _verdict(f"a {sign} one two", f"one {sign}two") is Verdict.ACCEPTED


def test_emoji_need_no_permission() -> None:
    """The selector that makes a sign an emoji is no hidden text."""
    assert _verdict("careful", "careful ⚠️") is Verdict.ACCEPTED


@kinds
def test_echoes(kind: OrderKind) -> None:
    """Any run of the instructions long enough to be no accident is an echo, in whatever case and spacing."""
    told = before_text(kind, _LIMITS[kind], "")
    for line in told.splitlines():
        for start in range(0, max(len(line) - 40, 1), 7):
            piece = line[start : start + 40]
            if len(" ".join(piece.split())) >= 32:
                assert _verdict("text", f"So: {piece.upper()}", kind) is Verdict.ECHO
                assert _verdict("text", piece.replace(" ", "\n  "), kind) is Verdict.ECHO


def test_an_original_that_quotes_the_instructions() -> None:
    """What the original says itself is no echo; one character less than a run is none either."""
    assert _verdict(_INSTRUCTION, _INSTRUCTION) is Verdict.ACCEPTED
    assert _verdict("@name or #channel", "link, @name or #channel that th") is Verdict.ACCEPTED
    assert _verdict("@name or #channel", "link, @name or #channel that the") is Verdict.ECHO


@pytest.mark.parametrize(
    ("rewrite", "verdict"),
    [
        ("\x00" + "x" * 500, Verdict.TOO_LONG),
        (f"{_INSTRUCTION} 99 " + "x" * 500, Verdict.TOO_LONG),
        ("\u200b\u2060", Verdict.EMPTY),
        (f"\ufffd {_INSTRUCTION} 99", Verdict.INVALID_TEXT),
        (f"{_INSTRUCTION} 99", Verdict.ECHO),
        ("99", Verdict.INVENTED),
    ],
)
def test_precedence(rewrite: str, verdict: Verdict) -> None:
    """Where several verdicts hold: too long, empty, invalid text, echo, invented; only too long says by how much."""
    judgement = judge(OrderKind.NOTE, "text", rewrite)
    assert judgement.verdict is verdict
    assert (judgement.over_by > 0) is (verdict is Verdict.TOO_LONG)


@kinds
@given(original=hostile, rewrite=hostile)
def test_what_is_accepted(kind: OrderKind, original: str, rewrite: str) -> None:
    """Whatever is accepted is within the limit, visible, without controls, and a text that UTF-8 can hold."""
    judgement = judge(kind, original, rewrite)
    assert judgement.over_by == (max(0, len(rewrite.encode()) - _LIMITS[kind]) if judgement.over_by else 0)
    if judgement.verdict is Verdict.ACCEPTED:
        assert 0 < len(rewrite.encode()) <= _LIMITS[kind]
        assert rewrite.strip()
        assert not any(unicodedata.category(each) == "Cc" and each not in "\n\t" for each in rewrite)
