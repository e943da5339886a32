"""Stored text inside rendered text: quoted so that it cannot forge structure, and exactly recoverable.

A stored text is shown as lines that each begin with `PREFIX`. A line that begins so is inert in CommonMark (it opens no
heading, list, fence, quote or HTML), and no label or heading of ours begins so.
"""

import re
from collections.abc import Iterator
from json.encoder import encode_basestring
from typing import Final

PREFIX: Final = "| "

#: What ends a line, for Unicode and for `str.splitlines`: CRLF counts as one, and ends in the line feed.
_LINE_BREAKS: Final = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")

#: Those but the line feed. A text without them is quoted without being taken apart.
_ODD_BREAK: Final = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029]")

#: A long text is gone through in pieces of this many characters: between two of them other threads get their turn.
_PIECE_CHARACTERS: Final = 256 * 1024

#: What a JSON string may hold raw but a single line may not: line breaks beyond ASCII, DEL, and lone surrogates, which
#: have no UTF-8 at all.
_RAW_IN_JSON: Final = re.compile("[\x7f\x85\u2028\u2029\ud800-\udfff]")

#: One plain word: a tool's name, an id.
_WORD: Final = re.compile(r"[\w.:/@+-]+")


def quote(text: str) -> str:
    """The text with `PREFIX` at its start and after every line break in it.

    Reversible: split at line breaks, drop one prefix from each piece, and the text is back, byte for byte.
    """
    if len(text) <= _PIECE_CHARACTERS:
        return PREFIX + _prefixed(text)
    return PREFIX + "".join([_prefixed(piece) for piece in _pieces(text)])


def _prefixed(text: str) -> str:
    """The text with `PREFIX` after every line break in it."""
    if _ODD_BREAK.search(text) is None:
        return text.replace("\n", "\n" + PREFIX)
    last = PREFIX if text[-1] in _LINE_BREAKS else ""
    return PREFIX.join(text.splitlines(keepends=True)) + last


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces, none of which parts a CR from its LF."""
    start = 0
    while start < len(text):
        end = start + _PIECE_CHARACTERS
        end += text[end - 1 : end + 1] == "\r\n"
        yield text[start:end]
        start = end


def json_string(text: str) -> str:
    """The text as a JSON string on one line: non-ASCII as it is, every line break and lone surrogate escaped."""
    string = encode_basestring(text)
    if string.isascii() and "\x7f" not in string:
        return string
    return _RAW_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", string)


def bare_or_quoted(text: str) -> str:
    """A text at a line's end, as it is where it cannot be mistaken for what stands around it, else as a JSON string.

    Around it stand our arrow, our notices in parentheses and the mark "(read)": an error text that ended in "(read)"
    would turn a write into a read that may be run again. The first character tells which of the two forms it is. What
    nobody sees (controls, format characters, odd spaces) is never bare.
    """
    is_mistakable = text.startswith(('"', "(")) or text.endswith(")") or "→" in text
    return json_string(text) if is_mistakable or text != text.strip() or not text.isprintable() else text


def bare_or_quoted_between(text: str) -> str:
    """The same for a text between parentheses of ours, where any parenthesis could be taken for one of them."""
    return json_string(text) if "(" in text or ")" in text else bare_or_quoted(text)


def word_or_quoted(text: str) -> str:
    """The text as it is where it is one plain word, else as a JSON string."""
    return text if _WORD.fullmatch(text) else json_string(text)


def size_of(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
