"""JSON as text: made compact with sorted keys, while every number keeps the digits that it came with.

Numbers never become floats or ints here, so an id beyond 64 bit and a price of 1.10 stay what they were.
"""

import json
import re
from typing import Final, Never, TypeAlias, TypeGuard

from sidecar.domain.limits import JSON_DEPTH
from sidecar.domain.text import json_string

Json: TypeAlias = "bool | str | Number | list[Json] | dict[str, Json] | None"


class NotPlainJson(ValueError):
    """The text is no JSON, repeats a key, or is nested deeper than `JSON_DEPTH`: it is to be kept as it is."""


class Number(str):
    """A JSON number by its literal."""

    __slots__ = ()


def parse(text: str) -> Json:
    """The text's value. Raises `NotPlainJson`."""
    try:
        value: Json = _decoder.decode(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise NotPlainJson from error
    return value


def compact(value: Json, level: int = 1) -> str:
    """The value on one line: no spaces, sorted keys, non-ASCII and `<>&` as is. Raises `NotPlainJson` if too deep."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return json_string(value)
    if isinstance(value, dict | list) and level > JSON_DEPTH:
        raise NotPlainJson
    if isinstance(value, dict):
        members = (f"{json_string(key)}:{compact(member, level + 1)}" for key, member in sorted(value.items()))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(compact(item, level + 1) for item in value) + "]"
    return _LITERALS[value]


def spellings(value: Json) -> set[str]:
    """Every text and number in the value, and how each is spelled in JSON: what another text may repeat of it."""
    found = set()
    waiting = [value]
    while waiting:
        match waiting.pop():
            case Number() as number:
                found.add(str(number))
            case str() as text:
                found |= {text, json_string(text)}
            case dict() as members:
                waiting += members.values()
            case list() as items:
                waiting += items
            case _:
                pass
    return found - {""}


def is_text(value: Json) -> TypeGuard[str]:
    """Whether the value is a string with a UTF-8 form (JSON can escape a lone surrogate, which has none)."""
    return type(value) is str and (value.isascii() or _SURROGATE.search(value) is None)


def _members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotPlainJson
    return members


def _no_constant(name: str) -> Never:
    """NaN and the infinities are Python's, not JSON's."""
    raise NotPlainJson(name)


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LITERALS: Final = {None: "null", True: "true", False: "false"}
_decoder: Final = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=Number, parse_float=Number, parse_constant=_no_constant
)
