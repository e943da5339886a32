"""Holds what came against what a case expects: partially, and with a few tests. The cases' README has the rules."""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from tools.conformance.texts import expanded, is_recipe, shown

_JSON: Final = "$json"
_ABSENT: Final = {"$absent": True}


def complaints(expected: Any, came: Any, place: str = "") -> list[str]:
    """Where what came is not what was expected, one line each; none if it is."""
    if is_recipe(expected):
        expected = shown(expanded(expected))
    if isinstance(expected, str):
        expected = shown(expected)
    if isinstance(expected, dict):
        tests = {name: argument for name, argument in expected.items() if name in _TESTS or name == _JSON}
        if tests:
            return [line for name, argument in tests.items() for line in _tested(name, argument, came, place)]
        return _of_members(expected, came, place)
    if isinstance(expected, list):
        return _of_elements(expected, came, place)
    same = came == expected and isinstance(came, bool) == isinstance(expected, bool)
    return [] if same else [_line(place, expected, came)]


def _of_members(expected: dict[str, Any], came: Any, place: str) -> list[str]:
    if not isinstance(came, dict):
        return [_line(place, "an object", came)]
    found: list[str] = []
    for name, each in expected.items():
        where = f"{place}.{name}"
        if each == _ABSENT:
            found += [f"{where}: is there"] if name in came else []
            continue
        found += complaints(each, came[name], where) if name in came else [f"{where}: is not there"]
    return found


def _of_elements(expected: list[Any], came: Any, place: str) -> list[str]:
    if not isinstance(came, list) or len(came) != len(expected):
        return [_line(place, f"a list of {len(expected)}", came)]
    pairs = zip(expected, came, strict=True)
    return [line for at, (each, one) in enumerate(pairs) for line in complaints(each, one, f"{place}[{at}]")]


def _texts(argument: Any) -> Iterable[str]:
    return [expanded(each) for each in (argument if isinstance(argument, list) else [argument])]


def _contains(argument: Any, came: Any) -> bool:
    return isinstance(came, str) and all(text in came for text in _texts(argument))


def _lacks(argument: Any, came: Any) -> bool:
    return isinstance(came, str) and not any(text in came for text in _texts(argument))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TESTS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$contains": _contains,
    "$lacks": _lacks,
    "$at_least": lambda least, came: _is_number(came) and came >= least,
    "$at_most": lambda most, came: _is_number(came) and came <= most,
    "$one_of": lambda several, came: came in several,
    "$not_empty": lambda _, came: isinstance(came, str | list | dict) and len(came) > 0,
}


def _tested(name: str, argument: Any, came: Any, place: str) -> list[str]:
    if name == _JSON:
        try:
            return complaints(argument, json.loads(came), f"{place} as JSON")
        except (TypeError, ValueError):
            return [_line(place, "JSON", came)]
    return [] if _TESTS[name](argument, came) else [_line(place, f"{name} {_short(argument)}", came)]


def _line(place: str, expected: Any, came: Any) -> str:
    return f"{place or 'the answer'}: expected {_short(expected)}, came {_short(came)}"


def _short(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 300 else f"{said[:200]} ... {said[-80:]}"
