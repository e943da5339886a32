"""Quoting is reversible for all of Unicode, and so are JSON strings."""

import json
import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain.text import PREFIX, bare_or_quoted, json_string, quote, size_of, word_or_quoted
from tests.domain.strategies import LINE_BREAKS, hostile

_CHUNK: Final = 0x1000


def _unquote(text: str) -> str:
    return "".join(line.removeprefix("| ") for line in (*text.splitlines(keepends=True), ""))


@given(hostile | st.text(st.characters(codec="utf-8")))
def test_quoting_is_reversible(text: str) -> None:
    """Dropping the prefix from each line, split at any line break that Unicode knows, gives the text back."""
    quoted = quote(text)
    assert all(line.startswith(PREFIX) for line in quoted.splitlines())
    assert _unquote(quoted) == text


def test_every_character_round_trips() -> None:
    """Each character of Unicode, between others and at either end, survives quoting and JSON."""
    for start in range(0, 0x110000, _CHUNK):
        characters = [chr(point) for point in range(start, start + _CHUNK) if not 0xD800 <= point < 0xE000]
        text = "a".join(characters)
        assert _unquote(quote(text)) == text
        assert all(line.startswith(PREFIX) for line in quote(text).splitlines())
        assert json.loads(json_string(text)) == text
        assert len(json_string(text).splitlines()) == 1
        for edge in (characters[:1], characters[-1:]):
            assert _unquote(quote("".join(edge))) == "".join(edge)


@pytest.mark.parametrize("end", LINE_BREAKS)
def test_a_line_break_at_the_end(end: str) -> None:
    """A text that ends in a line break is followed by a prefix, so that it cannot end our line for us."""
    assert quote(f"a{end}") == f"| a{end}| "


def test_crlf_is_one_line_break() -> None:
    """CRLF gets one prefix after it, not one in its middle; LF CR are two."""
    assert quote("a\r\nb\n\rc") == "| a\r\n| b\n| \r| c"


def test_an_empty_line_is_not_blank() -> None:
    """A blank stored line carries the prefix too: CommonMark ends a paragraph at a blank line."""
    assert quote("\n") == "| \n| "


@given(hostile | st.text())
def test_json_strings(text: str) -> None:
    """A JSON string is one line, has a UTF-8 form even for lone surrogates, and is what `json.loads` reads back."""
    shown = json_string(text)
    shown.encode()
    assert len(shown.splitlines()) == 1
    assert json.loads(shown) == json.loads(json.dumps(text))


def test_json_strings_stay_readable() -> None:
    """Non-ASCII and `<>&` are shown as they are; line breaks, DEL and lone surrogates are escaped."""
    assert json_string("é😀<>&\u2028\x85\x7f\v\ud800") == '"é😀<>&\\u2028\\u0085\\u007f\\u000b\\ud800"'


@given(hostile)
def test_bare_text_is_unmistakable(text: str) -> None:
    """A text is bare only without our marks and without controls; else it is a JSON string of itself."""
    shown = bare_or_quoted(text)
    if shown != text:
        assert json.loads(shown) == text
        return
    assert not text.startswith(('"', "(", " "))
    assert not text.endswith((")", " "))
    assert "→" not in text
    assert len(text.splitlines()) <= 1
    assert not any(ord(character) < 32 or character == "\x7f" for character in text)


@pytest.mark.parametrize("text", ["no such page", "a (b) c", 'say "x" twice', "a) b", "é😀", "", "- x", "# a"])
def test_plain_text_is_bare(text: str) -> None:
    """A text that cannot be mistaken for the line around it is shown as it came."""
    assert bare_or_quoted(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "x (read)",
        "(withheld)",
        '"x',
        "x)",
        "a → b",
        " a",
        "a ",
        "\xa0a",
        "a\nb",
        "a\tb",
        "a\x00",
        "a\x7fb",
        "a\x85b",
        "a\u2028b",
    ],
)
def test_mistakable_text_is_quoted(text: str) -> None:
    """A text that could end the line, pass for a notice or hide is shown as a JSON string."""
    assert bare_or_quoted(text) == json_string(text) != text


@given(hostile)
def test_words(text: str) -> None:
    """A name is shown bare only where it is one word without quotes or parentheses; else it reads back by JSON."""
    shown = word_or_quoted(text)
    if shown == text:
        assert re.fullmatch(r"[^\s\"'()|#→{}<>`*,;×\\]+", text)
    else:
        assert json.loads(shown) == text


@pytest.mark.parametrize("text", ["", "a b", "a\n", "(none)", 'a"', "a,b", "a;b", "a→b", "a|b"])
def test_no_words(text: str) -> None:
    """What is no plain word is quoted, an empty name and a trailing line feed among it."""
    assert word_or_quoted(text) == json_string(text)


@pytest.mark.parametrize("text", ["x", "mcp__jira.get-issue", "a:b/c@d+e-1", "naïve"])
def test_plain_words(text: str) -> None:
    """A tool's name or an id is shown as it is."""
    assert word_or_quoted(text) == text


@given(st.text(st.characters(codec="utf-8")))
def test_sizes_are_bytes(text: str) -> None:
    """A size is bytes of UTF-8."""
    assert size_of(text) == len(text.encode())


@pytest.mark.parametrize("ending", ["\r\n", "\n", "\r", "\u2028", "x"])
def test_a_long_text_is_quoted_as_a_short_one(ending: str) -> None:
    """A text that is gone through in pieces gets the same prefixes, also where a piece ends within a line break."""
    for size in (2**18 - 2, 2**18 - 1, 2**18, 2**19 - 1):
        text = "x" * size + ending * 3 + "y"
        pieces = quote(text).splitlines(keepends=True)
        assert all(piece.startswith(PREFIX) for piece in pieces)
        assert "".join(piece.removeprefix(PREFIX) for piece in pieces) == text
