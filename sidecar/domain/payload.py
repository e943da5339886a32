"""What is kept of a text that has a budget: the text itself, or its size and digest, or nothing.

A text over budget is never cut. Its raw form does not reach the disk; size and digest name it, so that two of them can
be told apart and a rewrite can be checked against the original.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from sidecar.domain.limits import PAYLOAD_CHARACTERS

WITHHELD_NOTICE = "(withheld)"


class PayloadState(StrEnum):
    WHOLE = "whole"
    NAMED = "named"
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True)
class Payload:
    """One argument value or error as kept. `text` is empty unless whole; `size` (bytes) and `sha256` unless named."""

    state: PayloadState
    text: str = ""
    size: int = 0
    sha256: str = ""


WITHHELD = Payload(PayloadState.WITHHELD)


def budgeted(shown: str, original: str | None = None) -> Payload:
    """The payload of a text: whole within the budget, else named.

    `original` is what the budget, size and digest go by where it differs from what would be shown: a string's
    characters instead of its JSON.
    """
    measured = shown if original is None else original
    if len(measured) <= PAYLOAD_CHARACTERS:
        return Payload(PayloadState.WHOLE, shown)
    size, sha256 = fingerprint(measured)
    return Payload(PayloadState.NAMED, size=size, sha256=sha256)


def fingerprint(text: str) -> tuple[int, str]:
    """Size in bytes and SHA-256 (lower-case hex) of the text's UTF-8."""
    data = text.encode()
    return len(data), hashlib.sha256(data).hexdigest()


def named_notice(size: int, sha256: str) -> str:
    """What stands for a text that is not shown, such as `(12 KiB not shown, digest 9f86d081)`."""
    return f"({readable_size(size)} not shown, digest {sha256[:8]})"


def readable_size(size: int) -> str:
    """A size for a reader, rounded to the nearest unit: bytes below 1 KiB, KiB below 1 MiB, MiB above."""
    kib = 1024
    if size < kib:
        return f"{size} bytes"
    if size < kib * kib:
        return f"{round(size / kib)} KiB"
    return f"{round(size / kib / kib)} MiB"
