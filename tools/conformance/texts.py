"""Texts by recipe, as the cases give them, on the tool's own side: valid Unicode only, since these are expectations."""

from hashlib import sha256
from typing import Any, Final

#: As a driver answers: texts over so many bytes of UTF-8 by digest and size.
SHOWN_BYTES: Final = 65_536

_RECIPES: Final = ({"repeat", "times"}, {"join"}, {"utf16"}, {"kept"})


def is_recipe(value: Any) -> bool:
    """Whether the value is a text by recipe."""
    return isinstance(value, dict) and set(value) in _RECIPES


def expanded(value: Any) -> str:
    """The text that a str or a recipe gives."""
    if isinstance(value, str):
        return value
    if "repeat" in value:
        return expanded(value["repeat"]) * int(value["times"])
    if "join" in value:
        return "".join(expanded(part) for part in value["join"])
    return b"".join(int(unit, 16).to_bytes(2, "big") for unit in value["utf16"]).decode("utf-16-be")


def shown(text: str) -> Any:
    """A text as a driver answers it."""
    data = text.encode()
    return text if len(data) <= SHOWN_BYTES else {"sha256": sha256(data).hexdigest(), "bytes": len(data)}


def with_kept(value: Any, kept: dict[str, Any]) -> Any:
    """The value with everything that was kept in its places. Raises KeyError where nothing of the name was."""
    if isinstance(value, dict):
        if set(value) == {"kept"}:
            return kept[value["kept"]]
        return {name: with_kept(each, kept) for name, each in value.items()}
    return [with_kept(each, kept) for each in value] if isinstance(value, list) else value
