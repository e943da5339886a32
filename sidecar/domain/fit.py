"""Whether a rewrite may stand for its original. It may drop, never invent."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.domain.instructions import OrderKind, before_text
from sidecar.domain.invention import HIDDEN, invents, seen
from sidecar.domain.orders import LIMITS
from sidecar.domain.text import size_of


class Verdict(StrEnum):
    """What became of a fit."""

    ACCEPTED = "accepted"
    NOT_OPEN = "not_open"
    ORIGINAL_MISMATCH = "original_mismatch"
    TOO_LONG = "too_long"
    EMPTY = "empty"
    ECHO = "echo"
    INVENTED = "invented"
    INVALID_TEXT = "invalid_text"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and by how many bytes the rewrite is over its limit (0 unless TOO_LONG)."""

    verdict: Verdict
    over_by: int = 0


#: Characters in a row that a rewrite shares with our instructions and not with its original: it repeats the prompt.
_ECHO_CHARACTERS: Final = 32

#: Control characters but line breaks and tabs.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def judge(kind: OrderKind, original: str, rewrite: str) -> Judgement:
    """Whether `rewrite`, without the white space around it, may stand for `original`."""
    over_by = size_of(rewrite) - LIMITS[kind]
    if over_by > 0:  # first: whatever came, nothing below reads more than a limit's worth of it
        return Judgement(Verdict.TOO_LONG, over_by)
    if not seen(rewrite).strip():
        return Judgement(Verdict.EMPTY)
    if not _is_text(rewrite, original):
        return Judgement(Verdict.INVALID_TEXT)
    if _echoes(kind, original, rewrite):
        return Judgement(Verdict.ECHO)
    if invents(original, rewrite):
        return Judgement(Verdict.INVENTED)
    return Judgement(Verdict.ACCEPTED)


def _is_text(rewrite: str, original: str) -> bool:
    """No control characters, and nothing hidden, reordering or replaced that did not come in."""
    foreign = {"\ufffd", *HIDDEN.findall(rewrite)} - set(original)
    return _CONTROL.search(rewrite) is None and not any(each in rewrite for each in foreign)


def _echoes(kind: OrderKind, original: str, rewrite: str) -> bool:
    said = _folded(rewrite)
    told = _folded(before_text(kind, LIMITS[kind], ""))
    given = _folded(original)
    pieces = (said[start : start + _ECHO_CHARACTERS] for start in range(len(said) - _ECHO_CHARACTERS + 1))
    return any(piece in told and piece not in given for piece in pieces)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
