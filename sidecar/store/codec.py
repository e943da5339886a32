"""Entries as bytes, under a checksum that ties them to their row."""

import hashlib
from typing import Final, Self

import msgspec
from msgspec.structs import astuple

from sidecar.domain.eligibility import TurnKey
from sidecar.domain.entry import RENDERING_VERSION, Entry, entry_body, rendered_bytes
from sidecar.domain.limits import BLOCK_BYTES

_CHECKSUM_BYTES: Final = 16


class _Body(msgspec.Struct, frozen=True, gc=False):
    """An entry's body among its bytes, and the rendering that it is of."""

    body: str = ""
    rendering: int = 0


class _Stored(Entry, frozen=True, gc=False, omit_defaults=True):
    """An entry as bytes: its fields, and the body beside them."""

    body: str = ""
    rendering: int = 0


_encoder: Final = msgspec.msgpack.Encoder()
_entries: Final = msgspec.msgpack.Decoder(Entry)
_bodies: Final = msgspec.msgpack.Decoder(_Body)


class Unreadable(Exception):
    """The bytes are damaged, or are another row's."""


class Identity(msgspec.Struct, frozen=True, gc=False):
    """What an entry's bytes belong to: the row's keys as they stand there. The version counts up with each change."""

    agent_handle: bytes
    conversation_key: bytes
    work_key: bytes
    entry_id: bytes
    version: int

    @classmethod
    def of(cls, key: TurnKey, entry_id: str, version: int) -> Self:
        """Of a turn."""
        conversation = key.conversation
        return cls(
            conversation.agent_handle.encode(),
            conversation.conversation_key.encode(),
            key.work_key.encode(),
            entry_id.encode(),
            version,
        )


class Sealed(msgspec.Struct, frozen=True, gc=False):
    """An entry ready for its row: its bytes, their checksum, and what it takes in a block (bytes of UTF-8)."""

    data: bytes
    checksum: bytes
    rendered_bytes: int


def seal(identity: Identity, entry: Entry) -> Sealed:
    """The entry's bytes are MessagePack with the fields by name, so that a later program can add one.

    The body is kept beside the fields unless it is longer than a block: History then has nothing to render.
    """
    body = entry_body(entry)
    size = rendered_bytes(entry, body)
    kept = (body, RENDERING_VERSION) if size <= BLOCK_BYTES else ()
    data = _encoder.encode(_Stored(*astuple(entry), *kept))
    return Sealed(data, checksum(identity, data), size)


def checksum(identity: Identity, data: bytes) -> bytes:
    """A digest over the row's keys and the entry's bytes, each behind its length: a row that holds another's text does
    not pass."""
    keys = (
        identity.agent_handle,
        identity.conversation_key,
        identity.work_key,
        identity.entry_id,
        b"%d" % identity.version,
    )
    framed = b"".join([part for key in keys for part in (len(key).to_bytes(8), key)])
    digest = hashlib.blake2b(framed, digest_size=_CHECKSUM_BYTES)
    digest.update(len(data).to_bytes(8))
    digest.update(data)
    return digest.digest()


def decode(identity: Identity, data: bytes, expected: bytes) -> tuple[Entry, str]:
    """The entry, and its body unless that is not there or of another rendering; then empty. Raises `Unreadable`."""
    if checksum(identity, data) != expected:
        raise Unreadable
    try:
        entry, kept = _entries.decode(data), _bodies.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable from error
    return entry, kept.body if kept.rendering == RENDERING_VERSION else ""
