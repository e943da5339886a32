"""Repair of text that is not valid Unicode, so that one lone surrogate can never poison a turn or its conversation."""

import re
from typing import Final

REPLACEMENT: Final = "\ufffd"
_SURROGATES: Final = re.compile("([\ud800-\udbff][\udc00-\udfff])|[\ud800-\udfff]")


class Mender:
    """Repairs the fields of one request, and remembers which it had to touch and how often: names, never content."""

    def __init__(self) -> None:
        self.fields: tuple[str, ...] = ()
        self.replaced = 0

    def mend(self, field: str, text: str) -> str:
        """`text` with each lone surrogate as U+FFFD; high and low halves that stand together become their character.

        Raises TypeError if `text` is no str.
        """
        if not isinstance(text, str):
            raise TypeError(f"{field} must be a str, not {type(text).__name__}")
        mended, lone = repaired(text)
        if lone:
            self.fields += (field,)
            self.replaced += lone
        return mended


def repaired(text: str) -> tuple[str, int]:
    """The text as valid Unicode, and how many lone surrogates were replaced. Valid text comes back as it is."""
    lone = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal lone
        if pair := found.group(1):
            return pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        lone += 1
        return REPLACEMENT

    return (_SURROGATES.sub(replace, text), lone) if not text.isascii() else (text, 0)
