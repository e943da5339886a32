"""A call line read back by a second mind: a parser that shares nothing with the code that writes the line."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final, cast


class Digits(str):
    """A number by its literal."""

    __slots__ = ()


@dataclass(frozen=True)
class Notice:
    """What stands for a value that is not shown: withheld, or named by its size in words and its digest."""

    size: str = ""
    digest: str = ""


@dataclass(frozen=True)
class Condensed:
    """A rewrite that stands for a value or an error."""

    text: str


@dataclass(frozen=True)
class Members:
    """An object in the order shown. Values are what JSON holds, with `Digits` for numbers, or a `Notice`."""

    pairs: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class ReadCall:
    """What a line says. `arguments` is a JSON value, a `Notice`, or the bare text; `error` is None if none is told. A
    rewrite is `Condensed`, wherever it stands."""

    name: str
    arguments: Any
    failed: bool
    error: str | Notice | Condensed | None
    read: bool


WITHHELD: Final = Notice()
_NOTICE: Final = re.compile(r"\(withheld\)|\((\d+ (?:bytes|KiB|MiB)) not shown, digest ([0-9a-f]{8})\)")
_CONDENSED: Final = "(condensed) "
_WORD: Final = re.compile(r"[\w.:/@+-]+")
_AFTER: Final = ") → "
_json: Final = json.JSONDecoder(
    parse_int=Digits,
    parse_float=Digits,
    parse_constant=lambda _: 1 / 0,
    object_pairs_hook=lambda pairs: Members(tuple(pairs)),
)


def read_call(line: str) -> ReadCall:
    """Raises `ValueError` where the line is not a call."""
    rest = _drop(line, "- ")
    name, rest = _name(rest)
    arguments, rest = _arguments(_drop(rest, "("))
    failed, error, read = _result(_drop(rest, _AFTER))
    return ReadCall(name, arguments, failed, error, read)


def read_notice(text: str) -> Notice:
    found = _NOTICE.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return Notice(found[1] or "", found[2] or "")


def read_json(text: str) -> Any:
    """A whole JSON text's value as `read_call` answers it. Raises `ValueError`."""
    return _json.decode(text)


def _drop(text: str, start: str) -> str:
    if not text.startswith(start):
        raise ValueError(text)
    return text[len(start) :]


def _name(text: str) -> tuple[str, str]:
    if text.startswith('"'):
        name, end = _json.raw_decode(text)
        return cast("str", name), text[end:]
    found = _WORD.match(text)
    if found is None:
        raise ValueError(text)
    return found[0], text[found.end() :]


def _arguments(text: str) -> tuple[Any, str]:
    try:
        value, end = _value(text, 0)
        if text.startswith(_AFTER, end):
            return value, text[end:]
    except (ValueError, ZeroDivisionError):
        pass
    bare, after, _ = text.partition(_AFTER)
    if not after:
        raise ValueError(text)
    return bare, text[len(bare) :]


def _value(text: str, start: int, *, top: bool = True) -> tuple[Any, int]:
    """A value in which each member of the outermost object may be a notice."""
    found = _NOTICE.match(text, start)
    if found is not None:
        return Notice(found[1] or "", found[2] or ""), found.end()
    if text.startswith(_CONDENSED, start):
        rewrite, end = _json.raw_decode(text, start + len(_CONDENSED))
        return Condensed(_string(rewrite)), end
    if top and text.startswith("{", start) and not text.startswith("{}", start):
        return _members(text, start + 1)
    return _json.raw_decode(text, start)


def _members(text: str, place: int) -> tuple[Members, int]:
    pairs = []
    while True:
        name, place = _json.raw_decode(text, place)
        if not isinstance(name, str) or isinstance(name, Digits):
            raise ValueError(text)
        value, place = _value(text, place + len(_drop(text[place : place + 1], ":")) + 1, top=False)
        pairs.append((name, value))
        if text.startswith("}", place):
            return Members(tuple(pairs)), place + 1
        _drop(text[place : place + 1], ",")
        place += 1


def _string(value: Any) -> str:
    if not isinstance(value, str) or isinstance(value, Digits):
        raise ValueError(value)
    return value


def _result(text: str) -> tuple[bool, str | Notice | Condensed | None, bool]:
    read = text.endswith(" (read)")
    outcome = text.removesuffix(" (read)")
    if outcome in ("success", "error"):
        return outcome == "error", None, read
    shown = _drop(outcome, "error: ")
    if shown.startswith(_CONDENSED):
        rewrite = shown.removeprefix(_CONDENSED)
        return True, Condensed(_string(_json.decode(rewrite)) if rewrite.startswith('"') else rewrite), read
    if shown.startswith("("):
        return True, read_notice(shown), read
    if shown.startswith('"'):
        return True, cast("str", _json.decode(shown)), read
    return True, shown, read
