"""Sensitive values are never kept: not in the arguments, not in an error that repeats them."""

import json

import pytest

from sidecar.domain.call_lines import line
from sidecar.domain.calls import CallKind, SuppliedCall, keep, over_budget

_SECRET = "hunter2-hunter2"  # noqa: S105 a made-up one


def _kept(arguments: str, error: str = "", *names: str) -> str:
    """The call's line, after a look at whether the secret is anywhere in what is kept."""
    sensitive = frozenset(names or ("password",))
    call = keep(SuppliedCall("x", arguments, CallKind.WRITE, failed=True, error=error, sensitive=sensitive))
    assert _SECRET not in repr(call)
    return line(call)


def test_a_member() -> None:
    """A sensitive argument is shown as withheld, outside quotes; the others are shown."""
    shown = _kept(json.dumps({"user": "kim", "password": _SECRET}))
    assert shown == '- x({"password":(withheld),"user":"kim"}) → error'


@pytest.mark.parametrize("value", [_SECRET * 20, [_SECRET], {"a": _SECRET}, None, 7, True, ""])
def test_any_value(value: object) -> None:
    """A sensitive value of any type and size is withheld: neither its size nor its digest is kept."""
    shown = _kept(json.dumps({"password": value}))
    assert shown == '- x({"password":(withheld)}) → error'


def test_only_named_arguments() -> None:
    """A sensitive name that no argument has, or that stands deeper, withholds nothing."""
    shown = _kept('{"a":{"password":1}}')
    assert shown == '- x({"a":{"password":1}}) → error'


def test_an_escaped_name() -> None:
    """A name is compared as JSON means it, not as it was spelled."""
    shown = _kept(f'{{"p\\u0061ssword":"{_SECRET}"}}')
    assert shown == '- x({"password":(withheld)}) → error'


@pytest.mark.parametrize(
    "arguments",
    [
        f'{{"password":"{_SECRET}"',
        f'{{"password":"{_SECRET}","password":"{_SECRET}"}}',
        f'{{"password":"{_SECRET}","b":{{"a":1,"a":2}}}}',
        f'["{_SECRET}"]',
        f'"{_SECRET}"',
        f'{{"password":"{_SECRET}","b":NaN}}',
        f'{{"password":"{_SECRET}","\\ud800":1}}',
        f'{{"password":"{_SECRET}","b":{"[" * 100}{"]" * 100}}}',
        "no secret in it",
    ],
)
def test_what_is_no_plain_object(arguments: str) -> None:
    """Arguments that are no plain object are withheld as a whole where the call names a sensitive argument."""
    assert _kept(arguments) == "- x((withheld)) → error"


@pytest.mark.parametrize("levels", [3, 64, 66, 100, 900])
def test_a_sensitive_value_of_any_depth(levels: int) -> None:
    """A sensitive value that is nested deeply is withheld like any other, and costs the turn nothing."""
    shown = _kept(f'{{"password":{"[" * levels}{"]" * levels},"user":"kim"}}', "no")
    assert shown.startswith(('- x({"password":(withheld),"user":"kim"}) → error: ', "- x((withheld)) → error: "))


@pytest.mark.parametrize("value", [_SECRET, 123456789, [1, 2], {"a": 'b"c'}, 'quo"te\\d', "new\nline", 1.5])
def test_an_error_that_repeats_a_value(value: object) -> None:
    """An error that holds a sensitive value, as a text or by its JSON, is withheld."""
    spelled = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    for error in (f"login failed for {spelled}.", f"bad: {json.dumps(value, separators=(',', ':'))}"):
        shown = _kept(json.dumps({"password": value}), error)
        assert shown == '- x({"password":(withheld)}) → error: (withheld)'


def test_a_long_error_that_repeats_a_value() -> None:
    """An error over budget that holds a sensitive value is withheld too: not even its digest is kept."""
    shown = _kept(json.dumps({"password": _SECRET}), "e" * 300 + _SECRET)
    assert shown == '- x({"password":(withheld)}) → error: (withheld)'


@pytest.mark.parametrize("value", ["", _SECRET])
def test_an_error_that_repeats_nothing(value: str) -> None:
    """An error that repeats no sensitive value is shown; an empty value is in no error."""
    shown = _kept(json.dumps({"password": value, "user": "kim"}), "no such user kim")
    assert shown.endswith("→ error: no such user kim")


def test_an_error_of_another_argument() -> None:
    """An error that repeats a value that is not sensitive is shown."""
    assert _kept('{"user":"kim"}', "no such user kim").endswith("→ error: no such user kim")


def test_an_error_that_repeats_part_of_a_value() -> None:
    """An error that holds a text from inside a sensitive object or array is withheld."""
    for value in ({"login": {"secret": _SECRET}}, ["kim", _SECRET]):
        shown = _kept(json.dumps({"password": value}), f"login failed for {_SECRET}")
        assert shown == '- x({"password":(withheld)}) → error: (withheld)'


@pytest.mark.parametrize(
    "arguments",
    [
        f'{{"password":"{_SECRET}"',
        f'{{"password":"{_SECRET}","password":"{_SECRET}"}}',
        f'{{"password":"{_SECRET}","b":NaN}}',
        f'["{_SECRET}"]',
        f'"{_SECRET}"',
    ],
)
def test_an_error_that_repeats_withheld_arguments(arguments: str) -> None:
    """Where arguments are withheld as a whole, an error that repeats what stood in them is withheld too."""
    assert _kept(arguments, f"cannot parse {arguments}") == "- x((withheld)) → error: (withheld)"
    assert _kept(arguments, f"login failed for {_SECRET}") == "- x((withheld)) → error: (withheld)"


def test_more_secrets_than_anybody_looks_for() -> None:
    """Past 256 secrets every error and every over-budget value counts as one that repeats a secret."""
    for count, repeats in ((256, False), (257, True)):
        arguments = json.dumps({"pins": list(range(1000, 1000 + count)), "text": "x" * 201})
        sensitive = frozenset({"pins"})
        call = SuppliedCall("x", arguments, CallKind.WRITE, failed=True, error="no such door", sensitive=sensitive)
        assert ("(withheld)" in line(keep(call)).partition("→")[2]) == repeats
        assert bool(list(over_budget(call))) == (not repeats)
        assert "error: " not in line(keep(SuppliedCall("x", arguments, CallKind.WRITE, sensitive=sensitive)))
