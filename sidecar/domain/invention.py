"""Whether a rewrite names something that its original does not: a number, an id, a link, an @handle or a #channel.

Compared exactly, but for what a model changes without meaning to: the sort of hyphens and quotation marks, and what
nobody sees. What is spelled in words alone ("ninety", "evil dot com") is beyond this judge.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

#: Scripts that put no space between a word and what stands beside it, as ranges of a character class.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)

#: A character of a word in a script that does.
_WORD: Final = rf"[^\W{_UNSPACED}]"

#: What nobody sees: the code points that Unicode lets a reader ignore, and a blank that is no white space. Emoji's own
#: variation selectors are not among the `HIDDEN` that an honest model has to avoid.
_IGNORABLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
HIDDEN: Final = re.compile(f"[{_IGNORABLE}]")
_UNSEEN: Final = re.compile(f"[{_IGNORABLE}\ufe0e\ufe0f]")

_ALIKE: Final = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-") | dict.fromkeys("‘’ʼ", "'"))

#: What may stand around a token without being part of it.
_AROUND: Final = "\"'`.,;:!?…*_|-/\\=~，、：；！？·"

#: What parts the tokens of one word. An ideographic full stop before a Latin letter is a dot of a host's name.
_APART: Final = re.compile(rf"[\s()\[\]{{}}<>«»„“”\"`|—―…，、：；！？（）「」『』【】《》{_UNSPACED}]|。(?![A-Za-z])")

#: A link by its markup, whatever it leads to.
_LINKED: Final = re.compile(r"(?:\]\(<?|<(?=[A-Za-z][\w+.-]*:))([^\s()<>]*)")

_MARKED: Final = re.compile(r"://|//\w|www\.|[@#]|\w[.。][^\W\d_]{2,}", re.IGNORECASE)

#: Where a number would begin earlier than its first digit: a sign or a point that joins it to nothing before it.
_SIGN: Final = re.compile(r"(?<![\w.\-])-?\.?$")

#: A number as a whole. In `[101,102]` the comma parts two of them, in `1,250` it does not.
_NUMBER: Final = re.compile(
    r"(?:(?<![\w.\-])-)?(?:(?<![\w.])\.\d+|(?:(?<![\d,\[])\d{1,3}(?:,\d{3})+(?![\d\]]|,\w)|\d+)(?:\.\d+)*)"
)

_CONTINUES: Final = re.compile(rf"[-._+]?{_WORD}")
_LINK_CONTINUES: Final = re.compile(rf"[-._~:/?#@!$&*+,;=%]*{_WORD}")


def seen(text: str) -> str:
    """The text without what nobody sees, and with one sort of hyphens and apostrophes."""
    return _UNSEEN.sub("", text).translate(_ALIKE)


def invents(original: str, rewrite: str) -> bool:
    """Whether a word of the rewrite names something that the original lacks."""
    given = seen(original)
    return any(not _is_given(word, given) for word in seen(rewrite).split())


def _is_given(word: str, original: str) -> bool:
    """A word that is there as a whole is no invention; else all that it is put together from must be there."""
    token = _token(word)
    targets = [_token(target) for target in _LINKED.findall(word)]
    if not targets and (not _names(token) or _occurs(token, original)):
        return True
    pieces = [piece for part in _APART.split(word) if _names(piece := _token(part))]
    if not targets and pieces in ([], [token]):
        return False
    return all(target and _occurs(target, original) for target in targets) and all(
        _occurs(piece, original) for piece in pieces
    )


def _token(word: str) -> str:
    """The word without what stands around it, but with the sign of a number."""
    token = word.strip(_AROUND + "()[]{}<>«»„“”—―（）「」『』【】《》。").removesuffix("'s")
    sign = _SIGN.search(word[: word.find(token)]) if token[:1].isdigit() else None
    return (sign[0] if sign else "") + token


def _names(token: str) -> bool:
    """Whether the token holds a digit (letters that count are words), or is a link, a handle or a channel."""
    return any(each.isnumeric() and not each.isalpha() for each in token) or _is_marked(token)


def _is_marked(token: str) -> bool:
    return _MARKED.search(unicodedata.normalize("NFKC", token)) is not None


def _occurs(token: str, original: str) -> bool:
    """Whether the original holds the token as a whole: the 12 of 2012 is none, nor the 1 of $1,250."""
    numbers = [found.span() for found in _NUMBER.finditer(original)] if token in original else []
    for place in _places(token, original):
        end = place + len(token)
        whole = all(end <= first or last <= place or place <= first <= last <= end for first, last in numbers)
        if whole and not _begins_earlier(token, original[:place]) and not _goes_on(token, original, end):
            return True
    return False


def _places(token: str, original: str) -> Iterator[int]:
    place = original.find(token)
    while place >= 0:
        yield place
        place = original.find(token, place + 1)


def _begins_earlier(token: str, before: str) -> bool:
    if token[0] == "@":
        return re.search(rf"{_WORD}[.+-]*$", before[-2:]) is not None
    if token[0] == "#":
        return not token[1:2].isdigit() and re.search(rf"{_WORD}[/=?&]?$", before[-2:]) is not None
    joined = rf"{_WORD}[-.+]?$" if _is_marked(token) else rf"{_WORD}$"
    return re.match(_WORD, token) is not None and re.search(joined, before[-2:]) is not None


def _goes_on(token: str, original: str, end: int) -> bool:
    if token[-1] in "@#":
        return original[end : end + 1].isalnum()
    if _is_marked(token):
        goes_on = _LINK_CONTINUES if "://" in token or token.startswith("www.") else _CONTINUES
        return goes_on.match(original, end) is not None
    return re.match(_WORD, token[-1]) is not None and re.match(_WORD, original[end : end + 1]) is not None
