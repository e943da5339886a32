"""One text for one JSON value, and the ids made of it. Total: no value makes these raise."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Final

from turnledger.identity.model import EVENT_PREFIX

# Any constant would do; it must never change, or a redelivery gets another id.
EVENT_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:turnledger:identity:event")

FINGERPRINT_CHARACTERS = 32

# Python refuses to print very long integers in decimal; past this size they go as hex.
MAX_DECIMAL_BITS = 4096

_CONTAINERS: Final = (Mapping, list, tuple)
_END: Final = object()

_Entries = Iterator[tuple[str, object]]


def canonical(value: object) -> str:
    """Compact ASCII JSON with sorted keys.

    What JSON has no word for (NaN, bytes, a cycle, other types) becomes a fixed word. It uses no
    recursion, so depth costs memory and never a RecursionError.
    """
    parts: list[str] = []
    open_containers: set[int] = set()
    stack: list[tuple[_Entries, str, int]] = [(iter([("", value)]), "", 0)]
    while stack:
        entries, closing, identity = stack[-1]
        label, item = next(entries, (closing, _END))
        parts.append(label)
        if item is _END:
            stack.pop()
            open_containers.discard(identity)
        elif not isinstance(item, _CONTAINERS):
            parts.append(_scalar(item))
        elif id(item) in open_containers:
            parts.append('"<cycle>"')
        else:
            open_containers.add(id(item))
            opening, closing = "{}" if isinstance(item, Mapping) else "[]"
            parts.append(opening)
            stack.append((_entries(item), closing, id(item)))
    return "".join(parts)


def fingerprint(value: object) -> str:
    """The first 32 hex digits of SHA-256 over `value`'s canonical text."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()[:FINGERPRINT_CHARACTERS]


def event_key(source: object, content: object) -> str:
    """`event:{uuid}` of a trigger without a conversation.

    The uuid is a version 5 one over the canonical JSON of source and content, not a random one:
    a redelivery of the same content gives the same key.
    """
    return f"{EVENT_PREFIX}{uuid.uuid5(EVENT_NAMESPACE, canonical([source, content]))}"


def _entries(container: Mapping[object, object] | list[object] | tuple[object, ...]) -> _Entries:
    """Each member of a container, after what stands before it: a comma, and its key if any."""
    members = _members(container) if isinstance(container, Mapping) else [("", item) for item in container]
    return iter([(f"{',' if index else ''}{key}", x) for index, (key, x) in enumerate(members)])


def _members(mapping: Mapping[object, object]) -> list[tuple[str, object]]:
    try:
        pairs = list(mapping.items())
    except Exception:  # noqa: BLE001  a foreign Mapping may raise anything; its type is all we get
        return [(f"{_scalar(type(mapping).__name__)}:", None)]
    return sorted(((f"{_scalar(key)}:", item) for key, item in pairs), key=lambda pair: pair[0])


def _scalar(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool() | str():
            return json.dumps(value)
        case int():
            return str(value) if value.bit_length() <= MAX_DECIMAL_BITS else hex(value)
        case float():
            return repr(value)
        case bytes():
            return f'"<bytes {value.hex()}>"'
        case _:
            # Not its repr: that may hold an address, which differs from process to process.
            return json.dumps(f"<{type(value).__name__}>")
