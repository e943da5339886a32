"""Reading one field of an untrusted payload: the value a rule asked for, or NoConversation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from turnledger.identity.model import NoConversation, Payload

# Sources number their threads with signed 64-bit integers at most.
MAX_NUMBER = 2**63 - 1


def child(parent: Payload, name: str) -> Payload:
    """The object at `name`."""
    value = parent.get(name)
    if not isinstance(value, Mapping):
        raise NoConversation(_complaint(parent, name, "an object"))
    return cast(Payload, value)


def optional_child(parent: Payload, name: str) -> Payload | None:
    """The object at `name`, or None where there is anything else."""
    value = parent.get(name)
    return cast(Payload, value) if isinstance(value, Mapping) else None


def text(parent: Payload, name: str, pattern: re.Pattern[str]) -> str:
    """The string at `name`, if all of it matches: a key is made of nothing that was not checked."""
    value = parent.get(name)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise NoConversation(_complaint(parent, name, "of the expected form"))
    return value


def number(parent: Payload, name: str) -> int:
    """The positive integer at `name`. True is an int in Python, and names no thread."""
    value = parent.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_NUMBER:
        raise NoConversation(_complaint(parent, name, "a positive integer"))
    return value


def _complaint(parent: Payload, name: str, expected: str) -> str:
    return f"{name} is not {expected}" if name in parent else f"{name} is missing"
