"""Arguments are JSON digit for digit, and what is no plain JSON object is shown as the text that came."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain.call_lines import line
from sidecar.domain.calls import CallKind, SuppliedCall, keep
from tests.domain.expectation import expected_arguments, shown
from tests.domain.strategies import json_objects


def _shown(arguments: str) -> str:
    text = line(keep(SuppliedCall("x", arguments, CallKind.WRITE)))
    return text.removeprefix("- x(").removesuffix(") → success")


@pytest.mark.parametrize(
    "number",
    ["1.10", "1e400", "1E+400", "-0", "-0.0", "123456789012345678901234567890", "0.1000", "1e-400", "9" * 199, "2.0"],
)
def test_numbers_keep_their_digits(number: str) -> None:
    """A number is shown by its literal, at any depth."""
    assert _shown(f'{{"n": {number}}}') == f'{{"n":{number}}}'
    assert _shown(f'{{"n": [{{"m": {number} }}]}}') == f'{{"n":[{{"m":{number}}}]}}' or len(number) > 190


def test_keys_are_sorted_at_all_depths() -> None:
    """Keys are sorted by code point at every depth, arrays keep their order, and no space is left."""
    text = ' { "b" : [ { "z": 1, "y": 2, "é": 3, "Z": 4 }, 1 ] ,\n"a" : { "d": {}, "c": [] } } '
    assert _shown(text) == '{"a":{"c":[],"d":{}},"b":[{"Z":4,"y":2,"z":1,"é":3},1]}'


def test_types_are_kept() -> None:
    """Literals, numbers and the strings that look like them stay apart."""
    text = '{"a":true,"b":"true","c":null,"d":"null","e":1,"f":"1","g":false,"h":""}'
    assert _shown(text) == text


def test_text_is_readable() -> None:
    """Escapes that are not needed are undone; quotes, controls, line breaks and lone surrogates stay escaped."""
    assert _shown('{"a":"\\u00e9\\/\\u003c\\ud83d\\ude00"}') == '{"a":"é/<😀"}'
    assert _shown('{"a":"\\"\\\\\\n\\u2028\\u0085\\u0000\\ud800"}') == '{"a":"\\"\\\\\\n\\u2028\\u0085\\u0000\\ud800"}'


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"a":1, "a":1}',
        '{"b":{"a":1,"a":2}, "c":3}',
        '{"b":[{"a":1,"\\u0061":2}]}',
        '{"z": NaN, "a": 1}',
        '{"z": Infinity, "a": 1}',
        '{"z": -Infinity}',
        '{"\\ud800": 1, "a": 2}',
        '{"z": 1, "a": 2',
        "{'a': 1}",
        '{"a": 01}',
        '{"a": 1,}',
        "plain words",
        "",
    ],
)
def test_no_plain_json_is_shown_as_it_came(text: str) -> None:
    """JSON that repeats a key at any depth, holds NaN or names a lone surrogate, and what is no JSON, is as it was."""
    assert _shown(text) == text


def test_a_line_break_in_malformed_arguments() -> None:
    """Malformed arguments with a line break or our own arrow are one JSON string."""
    assert json.loads(_shown('{"a": "b"\n) → success')) == '{"a": "b"\n) → success'


@pytest.mark.parametrize("text", ["[1,2]", '"a"', "1.10", "null", "[]"])
def test_json_that_is_no_object(text: str) -> None:
    """JSON that is no object is one value."""
    assert _shown(text) == text


def _nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_depth() -> None:
    """JSON of 64 levels is JSON, its white space dropped; deeper JSON is kept as the text that it is."""
    assert _shown(_nested(64).replace("[]", "[ ]")) == _nested(64)
    assert _shown(f'{{"a": {_nested(63)}}}') == f'{{"a":{_nested(63)}}}'
    assert _shown(_nested(67).replace("[]", "[ ]")) == _nested(67).replace("[]", "[ ]")


@pytest.mark.parametrize(
    "text", [f"{_nested(64)[:64]}[ ]{_nested(64)[64:]}", f'{{"a": {_nested(64)}}}', f'{{"a": {"[" * 63}1{"]" * 63}}}']
)
def test_the_64th_level_is_the_last(text: str) -> None:
    """Objects and arrays count as levels, the outermost too, whatever the innermost holds: 65 are kept as text."""
    levels = max(sum((c in "[{") - (c in "]}") for c in text[:end]) for end in range(len(text)))
    assert (_shown(text) == text) == (levels > 64)


@pytest.mark.parametrize("bomb", ["[" * 100_000, _nested(100_000), '{"a":' * 50_000 + "1" + "}" * 50_000])
def test_depth_bombs(bomb: str) -> None:
    """A depth bomb costs its text its place in the line, not the turn its entry."""
    assert "not shown, digest" in _shown(bomb)


@given(json_objects)
def test_objects(text: str) -> None:
    """Any JSON object is shown compact with its keys sorted, or as the text it is where that is no plain JSON."""
    expected = expected_arguments(SuppliedCall("x", text, CallKind.WRITE))
    if not isinstance(expected, str) and "not shown" not in _shown(text):
        assert _shown(text) == shown(expected)


@given(st.permutations(["a", "b", "c", "d"]))
def test_order_as_sent_does_not_matter(keys: list[str]) -> None:
    """The same members in any order are the same line."""
    assert _shown("{" + ",".join(f'"{key}":1' for key in keys) + "}") == '{"a":1,"b":1,"c":1,"d":1}'
