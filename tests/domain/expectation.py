"""What a call must be read back as, worked out from the call as it was sent and from the rules alone."""

import hashlib
import json
import re
from typing import Any, Final

from sidecar.domain.calls import CallKind, SuppliedCall
from tests.domain.call_reader import WITHHELD, Digits, Members, Notice, ReadCall, read_json

_BUDGET: Final = 200
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED: Final = re.compile("[\x7f\x85\u2028\u2029\ud800-\udfff]")


class NoJson(Exception):
    """The arguments are to be shown as the text that they are."""


def expected_call(call: SuppliedCall) -> ReadCall:
    """The reading of the call, its error whole or named (a sensitive value may have it withheld besides)."""
    error = in_budget(call.error) if call.failed and call.error else None
    return ReadCall(call.name, expected_arguments(call), call.failed, error, call.kind is CallKind.READ)


def expected_arguments(call: SuppliedCall) -> Any:
    """The arguments' value, keys sorted at all depths and notices for what is not shown, else the text as sent."""
    try:
        value = ordered(read_json(call.arguments))
        if not isinstance(value, Members):
            return WITHHELD if call.sensitive else judged(value)
        if any(_SURROGATE.search(name) for name, _ in value.pairs):
            raise NoJson
        return Members(
            tuple((name, WITHHELD if name in call.sensitive else judged(held)) for name, held in value.pairs)
        )
    except (ValueError, ArithmeticError, NoJson):
        return WITHHELD if call.sensitive else in_budget(call.arguments)


def ordered(value: Any) -> Any:
    """The value with the keys of its objects sorted. Raises `NoJson` where one is there twice."""
    if isinstance(value, list):
        return [ordered(item) for item in value]
    if not isinstance(value, Members):
        return value
    names = [name for name, _ in value.pairs]
    if len(set(names)) < len(names):
        raise NoJson
    return Members(tuple((name, ordered(held)) for name, held in sorted(value.pairs, key=lambda pair: pair[0])))


def judged(value: Any) -> Any:
    """The value where it is within the budget, a text by its characters and anything else by its JSON."""
    text = value if is_text(value) else shown(value)
    return value if len(text) <= _BUDGET else in_budget(text)


def is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Digits) and not _SURROGATE.search(value)


def in_budget(text: str) -> str | Notice:
    return text if len(text) <= _BUDGET else named(text)


def named(text: str) -> Notice:
    """The notice for a text: its size in words and the first 8 hex digits of its SHA-256."""
    data = text.encode()
    return Notice(size_words(len(data)), hashlib.sha256(data).hexdigest()[:8])


def size_words(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    return f"{round(size / 1024)} KiB" if size < 1024**2 else f"{round(size / 1024**2)} MiB"


def shown(value: Any) -> str:
    """Compact JSON on one line."""
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(shown, value))}]"
    if isinstance(value, Members):
        return "{" + ",".join(f"{shown(name)}:{shown(held)}" for name, held in value.pairs) + "}"
    text = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
