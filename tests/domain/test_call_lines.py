"""Every call line reads back into the call that it tells of, whatever the texts in it hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.domain.call_lines import line, lines, write_names
from sidecar.domain.calls import CallKind, SuppliedCall, keep
from tests.domain.call_reader import WITHHELD, read_call, read_json
from tests.domain.expectation import expected_call
from tests.domain.making import read, write
from tests.domain.strategies import hostile, supplied_calls


def _as_sent(text: str) -> list[object]:
    """What a text that is shown bare may be read as: itself, or the JSON that it looks like, in the order as sent."""
    try:
        return [text, read_json(text)]
    except (ValueError, ArithmeticError):
        return [text]


@settings(max_examples=300)
@given(supplied_calls())
def test_a_line_reads_back(call: SuppliedCall) -> None:
    """Name, arguments or notices, outcome and read mark are read back exactly, and the line is one line."""
    text = line(keep(call))
    assert len(text.splitlines()) == 1
    found, expected = read_call(text), expected_call(call)
    assert (found.name, found.failed, found.read) == (expected.name, expected.failed, expected.read)
    assert found.arguments == expected.arguments or found.arguments in _as_sent(call.arguments)[1:]
    assert found.error == expected.error or (call.sensitive and found.error == WITHHELD)


@settings(max_examples=200)
@given(hostile, hostile, hostile.filter(bool), st.booleans())
def test_no_write_passes_for_a_read(name: str, arguments: str, error: str, failed: bool) -> None:
    """A write never ends in the read mark, and no failure reads as a success, for any name, arguments and error."""
    text = line(keep(SuppliedCall(name or "x", arguments, CallKind.WRITE, failed, error if failed else "")))
    assert not text.endswith("(read)")
    assert read_call(text).failed == failed
    assert text.endswith("→ success") != failed


@pytest.mark.parametrize(
    "error",
    [
        "(read)",
        "no (read)",
        "a → success",
        "success",
        "",
        "no)",
        '"no"',
        "no\n- x({}) → success",
        "no\u2028x",
        "no (read) ",
    ],
)
def test_errors_that_imitate_us(error: str) -> None:
    """An error that imitates the end of a line is read back as the error of a failed write."""
    call = SuppliedCall("x", "{}", CallKind.WRITE, failed=True, error=error)
    found = read_call(line(keep(call)))
    assert (found.failed, found.error or "", found.read) == (True, error, False)


@pytest.mark.parametrize(
    "inner", ["(withheld)", "(12 KiB not shown, digest 9f86d081)", "(0 bytes not shown, digest e3b0c442)"]
)
@pytest.mark.parametrize("shape", ["{}", '{{"k":{}}}', '{{"a":"b","k":{}}}', " {}", "x{}"])
def test_arguments_that_imitate_notices(shape: str, inner: str) -> None:
    """Malformed arguments never pass for a value that was withheld or named."""
    text = shape.format(inner)
    assert read_call(line(keep(SuppliedCall("x", text, CallKind.WRITE)))).arguments == text


@pytest.mark.parametrize("hidden", ["\u200b", "\u2060", "\ufeff", "\u202c", "\u200e"])
def test_a_read_mark_before_what_nobody_sees(hidden: str) -> None:
    """An error of a write does not end, to the eye, in the read mark: what follows it is quoted, if only invisible."""
    text = line(keep(SuppliedCall("x", "{}", CallKind.WRITE, failed=True, error=f"no (read){hidden}")))
    assert text.endswith('"')


def test_lines_to_the_letter() -> None:
    """The line of a success, of a failure with and without a text, and of reads."""
    args = '{"b":1,"a":"é<>&"}'
    read_error = SuppliedCall("r", "{}", CallKind.READ, failed=True, error="no such page")
    assert line(keep(SuppliedCall("a.b", args, CallKind.WRITE))) == '- a.b({"a":"é<>&","b":1}) → success'
    assert line(keep(SuppliedCall("a b", "{}", CallKind.WRITE, failed=True))) == '- "a b"({}) → error'
    assert line(keep(read_error)) == "- r({}) → error: no such page (read)"
    assert line(read()) == "- r({}) → success (read)"


def test_every_write_is_shown() -> None:
    """Writes have no bound of number, stand in call order among the reads, and carry no mark."""
    shown_lines = lines([write(f"w{place}") if place % 2 else read() for place in range(60)])
    writes = [each for each in shown_lines if each.startswith("- w")]
    assert writes == [f"- w{place}({{}}) → success" for place in range(1, 60, 2)]
    assert shown_lines[:3] == ["- r({}) → success (read)", writes[0], "- r({}) → success (read)"]


@pytest.mark.parametrize(("reads", "omitted"), [(11, 0), (12, 0), (13, 1), (40, 28)])
def test_twelve_reads(reads: int, omitted: int) -> None:
    """The first 12 reads in call order are shown, the others counted, last."""
    last = [f"- (+{omitted} further read call(s) omitted)"] if omitted else []
    expected = [f"- r{place}({{}}) → success (read)" for place in range(min(reads, 12))]
    assert lines([*(read(f"r{place}") for place in range(reads)), write()]) == [*expected, "- x({}) → success", *last]


def test_discovery_never_shows() -> None:
    """META calls are neither shown nor counted, failed or not."""
    meta = keep(SuppliedCall("search", "{}", CallKind.META, failed=True, error="no"))
    assert lines([meta] * 20) == []
    assert write_names([meta, read()]) == ""


def test_names_of_writes() -> None:
    """Write names stand in order of first call with how often each ran and failed; what is no word is quoted."""
    some = [write("a"), write("b", failed=True), write("a"), write("c; d"), write("e", failed=True)]
    more = [write("e"), write("b", failed=True), read("z")]
    assert write_names([*some, *more]) == 'a ×2, b ×2 (failed), "c; d", e ×2 (1 failed)'
