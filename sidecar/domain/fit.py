"""Whether a rewrite may stand for its original. It may drop, never invent."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.domain.instructions import OrderKind, before_text
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

_MARKED: Final = re.compile(r"://|www\.|@|#|\.[a-z]{2,}(/|$)")

#: What may stand around a token without being part of it.
_AROUND: Final = "\"'`.,;:!?()[]{}<>«»„“”‘’…*_|–—-/\\=~"


def judge(kind: OrderKind, original: str, rewrite: str) -> Judgement:
    """Whether `rewrite`, without the white space around it, may stand for `original`."""
    over_by = size_of(rewrite) - LIMITS[kind]
    if not rewrite:
        return Judgement(Verdict.EMPTY)
    if not _is_text(rewrite, original):
        return Judgement(Verdict.INVALID_TEXT)
    if over_by > 0:
        return Judgement(Verdict.TOO_LONG, over_by)
    if _echoes(kind, original, rewrite):
        return Judgement(Verdict.ECHO)
    if any(not _occurs(token, original) for token in _checkable(rewrite)):
        return Judgement(Verdict.INVENTED)
    return Judgement(Verdict.ACCEPTED)


def _is_text(rewrite: str, original: str) -> bool:
    """No control characters but line breaks and tabs, and no more replacement characters than came in."""
    controls = any(unicodedata.category(each) == "Cc" and each not in "\n\t" for each in rewrite)
    return not controls and ("\ufffd" not in rewrite or "\ufffd" in original)


def _echoes(kind: OrderKind, original: str, rewrite: str) -> bool:
    said = _folded(rewrite)
    told = _folded(before_text(kind, LIMITS[kind], ""))
    given = _folded(original)
    pieces = (said[start : start + _ECHO_CHARACTERS] for start in range(len(said) - _ECHO_CHARACTERS + 1))
    return any(piece in told and piece not in given for piece in pieces)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _checkable(rewrite: str) -> Iterator[str]:
    """The tokens that name something: those with a digit, links and addresses, @handles, #channels."""
    for word in rewrite.split():
        token = word.strip(_AROUND)
        if any(each.isnumeric() for each in token) or _MARKED.search(token):
            yield token


def _occurs(token: str, original: str) -> bool:
    """Whether the original holds the token as a whole: the 12 of 2012 is none."""
    place = original.find(token)
    while place >= 0:
        end = place + len(token)
        if not _joined(original, place - 1, token[0]) and not _joined(original, end, token[-1]):
            return True
        place = original.find(token, place + 1)
    return False


def _joined(text: str, place: int, edge: str) -> bool:
    """Whether the character there belongs to the same word as the token's edge."""
    return 0 <= place < len(text) and text[place].isalnum() and edge.isalnum()
