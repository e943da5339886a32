"""The budget of argument values and errors: 200 characters are whole, 201 are named, and nothing is ever cut."""

import hashlib
import json

import pytest

from sidecar.domain.call_lines import line
from sidecar.domain.calls import CallKind, SuppliedCall, keep
from sidecar.domain.payload import PayloadState, budgeted, named_notice, readable_size


def _line(arguments: str, error: str = "") -> str:
    return line(keep(SuppliedCall("x", arguments, CallKind.WRITE, failed=bool(error), error=error)))


def _notice(text: str) -> str:
    return f"({len(text.encode())} bytes not shown, digest {hashlib.sha256(text.encode()).hexdigest()[:8]})"


@pytest.mark.parametrize("character", ["a", "é", "😀", '"', "\n", "\x00", "\u2028", "\u0301", "\u202e"])
def test_a_string_is_judged_by_its_characters(character: str) -> None:
    """A string of 200 code points is whole, however many bytes or escapes; one of 201 is named by its own text."""
    whole, over = character * 200, character * 201
    assert json.loads(_line(json.dumps({"v": whole})).removeprefix("- x(").removesuffix(") → success")) == {"v": whole}
    assert _line(json.dumps({"v": over})) == f'- x({{"v":{_notice(over)}}}) → success'


@pytest.mark.parametrize("character", ["a", "é", "😀"])
def test_an_error_is_judged_by_its_characters(character: str) -> None:
    """An error of 200 code points is whole, one of 201 is named."""
    assert _line("{}", character * 200) == f"- x({{}}) → error: {character * 200}"
    assert _line("{}", character * 201) == f"- x({{}}) → error: {_notice(character * 201)}"


@pytest.mark.parametrize("shape", ["9{}", "[1,{}]", '{{"k":"{}"}}', "[true,{}]"])
def test_a_non_string_is_judged_by_its_json(shape: str) -> None:
    """A number, array or object whose compact JSON has 200 characters is whole; with 201 it is named by that JSON."""
    filler = 200 - len(shape.format(""))
    whole, over = shape.format("7" * filler), shape.format("7" * (filler + 1))
    assert _line(f'{{"v": {whole.replace(",", " , ")}}}') == f'- x({{"v":{whole}}}) → success'
    assert _line(f'{{"v": {over}}}') == f'- x({{"v":{_notice(over)}}}) → success'


def test_each_value_is_judged_alone() -> None:
    """Many values within the budget are all whole, beside one that is over it."""
    values = {f"k{place:02d}": "v" * 200 for place in range(50)}
    over = json.dumps({**values, "z": "w" * 201})
    expected = json.dumps(values, separators=(",", ":"))[:-1] + f',"z":{_notice("w" * 201)}}}'
    assert _line(over) == f"- x({expected}) → success"


def test_one_value_for_what_is_no_object() -> None:
    """Arguments that are no object, or no JSON, are one value with one budget."""
    assert _line("p" * 200) == f"- x({'p' * 200}) → success"
    assert _line("p" * 201) == f"- x({_notice('p' * 201)}) → success"
    whole, over = f"[{'7' * 198}]", f"[{'7' * 199}]"
    assert _line(whole) == f"- x({whole}) → success"
    assert _line(over) == f"- x({_notice(over)}) → success"


def test_a_whole_string_is_judged_by_its_characters_too() -> None:
    """Arguments that are one JSON string of 200 characters are within the budget, and over it by their own text."""
    assert _line(json.dumps("a" * 200)) == f'- x("{"a" * 200}") → success'
    assert _line(json.dumps("a" * 201)) == f"- x({_notice('a' * 201)}) → success"


def test_lone_surrogates_are_judged_by_their_json() -> None:
    """A string with a lone surrogate has no UTF-8 of its own, so its JSON is what is counted and named."""
    shown = '"\\ud800' + "a" * 193 + '"'
    assert _line('{"v":"\\ud800' + "a" * 192 + '"}') == '- x({"v":"\\ud800' + "a" * 192 + '"}) → success'
    assert _line('{"v":"\\ud800' + "a" * 193 + '"}') == f'- x({{"v":{_notice(shown)}}}) → success'


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (201, "201 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (1537, "2 KiB"),
        (12_288, "12 KiB"),
        (1024 * 1024 - 1024, "1023 KiB"),
        (1024 * 1024, "1 MiB"),
        (31 * 1024 * 1024 + 1024 * 600, "32 MiB"),
    ],
)
def test_size_words(size: int, words: str) -> None:
    """Bytes below 1 KiB, KiB below 1 MiB, MiB above, to the nearest."""
    assert readable_size(size) == words


def test_notices() -> None:
    """A notice holds the size in words and the first 8 hex digits of SHA-256."""
    digest = hashlib.sha256(b"test").hexdigest()
    assert digest.startswith("9f86d081")
    assert named_notice(12_288, digest) == "(12 KiB not shown, digest 9f86d081)"


def test_what_is_kept_of_an_over_budget_text() -> None:
    """Only size and full digest are kept of a text over budget: not one character of it."""
    text = "é" * 201
    kept = budgeted(text, text)
    assert (kept.state, kept.text, kept.size) == (PayloadState.NAMED, "", 402)
    assert kept.sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_what_is_kept_of_a_call() -> None:
    """No over-budget argument or error is anywhere in what is kept of a call."""
    call = keep(SuppliedCall("x", '{"a":"' + "q" * 201 + '"}', CallKind.WRITE, failed=True, error="y" * 201))
    assert "qq" not in repr(call)
    assert "yy" not in repr(call)
