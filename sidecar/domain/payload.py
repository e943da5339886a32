"""What is kept of a text that has a budget: the text itself, or its size and digest, or a rewrite, or nothing.

A text over budget is never cut. Its raw form does not reach the disk; size and digest name it, so that two of them can
be told apart and a rewrite can be checked against the original.
"""

import hashlib
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from sidecar.domain.limits import PAYLOAD_CHARACTERS

WITHHELD_NOTICE = "(withheld)"

CONDENSED_NOTICE = "(condensed) "


class PayloadState(StrEnum):
    """How a payload is kept."""

    WHOLE = "whole"
    NAMED = "named"
    CONDENSED = "condensed"
    WITHHELD = "withheld"


class Payload(Struct, frozen=True, omit_defaults=True, gc=False):
    """One argument value or error as kept.

    `text` is what came if WHOLE, the rewrite if CONDENSED, else empty. `size` (bytes) and `sha256` are the original's
    if it is NAMED or CONDENSED.
    """

    state: PayloadState
    text: str = ""
    size: int = 0
    sha256: str = ""


WITHHELD = Payload(PayloadState.WITHHELD)


def is_over_budget(original: str) -> bool:
    """Whether a text is too long to be kept as it is."""
    return len(original) > PAYLOAD_CHARACTERS


def budgeted(shown: str, original: str) -> Payload:
    """The payload of a text: whole within the budget, else named.

    Budget, size and digest go by `original`, which differs from what would be shown where a string is shown as JSON.
    """
    if not is_over_budget(original):
        return Payload(PayloadState.WHOLE, shown)
    size, sha256 = fingerprint(original)
    return Payload(PayloadState.NAMED, size=size, sha256=sha256)


def condensed(payload: Payload, rewrite: str) -> Payload:
    """The payload with a rewrite in its place; it still knows which text that stands for."""
    return replace(payload, state=PayloadState.CONDENSED, text=rewrite)


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
    if round(size / kib) < kib:
        return f"{round(size / kib)} KiB"
    return f"{round(size / kib / kib)} MiB"
