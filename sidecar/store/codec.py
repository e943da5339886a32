"""Entries as bytes, under a checksum that ties them to their row."""

import hashlib
from dataclasses import dataclass
from typing import Final

import msgspec

from sidecar.domain.eligibility import TurnKey
from sidecar.domain.entry import Entry, rendered_bytes

_CHECKSUM_BYTES: Final = 16

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Entry)


class Unreadable(Exception):
    """The bytes are damaged, or are another row's."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What an entry's bytes belong to. The version counts up with each change of the entry."""

    key: TurnKey
    entry_id: str
    version: int


@dataclass(frozen=True, slots=True)
class Sealed:
    """An entry ready for its row: its bytes, their checksum, and what it takes in a block (bytes of UTF-8)."""

    data: bytes
    checksum: bytes
    rendered_bytes: int


def seal(identity: Identity, entry: Entry) -> Sealed:
    """The entry's bytes are MessagePack with the fields by name, so that a later program can add one."""
    data = _encoder.encode(entry)
    return Sealed(data, checksum(identity, data), rendered_bytes(entry))


def checksum(identity: Identity, data: bytes) -> bytes:
    """A digest over the row's keys and the entry's bytes: a row that holds another's text does not pass."""
    conversation = identity.key.conversation
    keys = (conversation.agent_handle, conversation.conversation_key, identity.key.work_key, identity.entry_id)
    digest = hashlib.blake2b(digest_size=_CHECKSUM_BYTES)
    for part in (*(key.encode() for key in keys), str(identity.version).encode(), data):
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.digest()


def decode(identity: Identity, data: bytes, expected: bytes) -> Entry:
    """The entry. Raises `Unreadable`."""
    if checksum(identity, data) != expected:
        raise Unreadable
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable from error
