"""Arguments without their sensitive values, for what leaves the engine's memory."""

import json
from collections.abc import Iterator
from typing import Final, NoReturn

WITHHELD: Final = "(withheld)"
_SPACE: Final = " \t\n\r"


class _NotAnObject(ValueError):
    """The text is no JSON object, or repeats a key."""


def withheld(arguments: str, sensitive: tuple[str, ...]) -> str:
    """`arguments` with the value of each sensitive top-level name replaced by "(withheld)", all else digit for digit.

    Text that is no JSON object, or that repeats a key, is withheld as a whole, as it is in the block.
    """
    if not sensitive:
        return arguments
    try:
        members = list(_members(arguments))
    except (_NotAnObject, RecursionError):
        return WITHHELD
    for name, start, end in reversed(members):
        if name in sensitive:
            arguments = f'{arguments[:start]}"{WITHHELD}"{arguments[end:]}'
    return arguments


def _members(text: str) -> Iterator[tuple[str, int, int]]:
    """Each top-level name with the start and end of its value."""
    # Numbers stay text: what they hold is nobody's business here, and Python refuses to read very long ones.
    decoder = json.JSONDecoder(
        object_pairs_hook=_without_repeats, parse_constant=_refuse, parse_int=str, parse_float=str
    )
    try:
        if not isinstance(decoder.decode(text), dict):
            raise _NotAnObject
        at = _skip(text, text.index("{") + 1)
        while text[at] != "}":
            name, at = decoder.raw_decode(text, at)
            start = _skip(text, _skip(text, at) + 1)
            _, end = decoder.raw_decode(text, start)
            yield name, start, end
            at = _skip(text, end)
            at = _skip(text, at + 1) if text[at] == "," else at
    except json.JSONDecodeError as error:
        raise _NotAnObject from error


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(members := dict(pairs)) != len(pairs):
        raise _NotAnObject
    return members


def _refuse(_constant: str) -> NoReturn:
    raise _NotAnObject
