"""What a failed call carries in `grpc-status-details-bin`: google.rpc's ErrorInfo, RetryInfo and BadRequest.

The few messages are declared here, in a descriptor pool of their own, so that the library needs no googleapis package
and never collides with the one in its engine's process. Only field numbers matter on the wire.
"""

from typing import Any, Final

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from turnledger.failure import DEADLINE_EXCEEDED, UNREACHABLE, Failure, Violation

DETAILS_KEY: Final = "grpc-status-details-bin"
#: ErrorInfo of anybody else gives no reasons that this library could trust.
DOMAIN: Final = "turnledger"

_PACKAGE: Final = "turnledger.rich_status"
_Field = descriptor_pb2.FieldDescriptorProto
_FIELDS: Final[dict[str, list[tuple[str, int, str]]]] = {
    "Status": [("details", 3, "Any*")],
    "Any": [("type_url", 1, "string"), ("value", 2, "bytes")],
    "ErrorInfo": [("reason", 1, "string"), ("domain", 2, "string")],
    "RetryInfo": [("retry_delay", 1, "Duration")],
    "Duration": [("seconds", 1, "int64"), ("nanos", 2, "int32")],
    "BadRequest": [("field_violations", 1, "FieldViolation*")],
    "FieldViolation": [("field", 1, "string"), ("description", 2, "string")],
}
_SCALARS: Final = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "int64": _Field.TYPE_INT64,
    "int32": _Field.TYPE_INT32,
}


def failure_of(code: grpc.StatusCode, message: str | None, trailers: object) -> Failure:
    """The failure that a call's status, message and trailing metadata tell; damaged details count as none."""
    reason = ""
    retry_after: float | None = None
    violations: tuple[Violation, ...] = ()
    for name, value in _details(trailers):
        try:
            detail: Any = _MESSAGES[name].FromString(value)
        except (KeyError, DecodeError):
            continue
        if name == "ErrorInfo" and detail.domain == DOMAIN:
            reason = detail.reason
        elif name == "RetryInfo":
            retry_after = detail.retry_delay.seconds + detail.retry_delay.nanos / 1e9
        elif name == "BadRequest":
            violations = tuple(Violation(one.field, one.description) for one in detail.field_violations)
    return Failure(code.name, reason or _reason_of(code), message or "", retry_after, violations)


def _reason_of(code: grpc.StatusCode) -> str:
    """The reason where none was given."""
    if code is grpc.StatusCode.UNAVAILABLE:
        return UNREACHABLE
    return DEADLINE_EXCEEDED if code is grpc.StatusCode.DEADLINE_EXCEEDED else code.name


def _details(trailers: object) -> list[tuple[str, bytes]]:
    """Each detail's short type name and bytes."""
    pairs: Any = trailers or ()
    for key, value in pairs:
        if key == DETAILS_KEY:
            try:
                status: Any = _MESSAGES["Status"].FromString(value)
            except DecodeError:
                return []
            return [(detail.type_url.rpartition(".")[2], detail.value) for detail in status.details]
    return []


def _field(name: str, number: int, kind: str) -> descriptor_pb2.FieldDescriptorProto:
    bare = kind.rstrip("*")
    field = _Field(
        name=name,
        number=number,
        label=_Field.LABEL_REPEATED if kind.endswith("*") else _Field.LABEL_OPTIONAL,
        type=_SCALARS.get(bare, _Field.TYPE_MESSAGE),
    )
    if bare not in _SCALARS:
        field.type_name = f".{_PACKAGE}.{bare}"
    return field


def _declare() -> dict[str, type[Message]]:
    file = descriptor_pb2.FileDescriptorProto(name="turnledger/rich_status.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        file.message_type.add(name=name, field=[_field(*field) for field in fields])
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}


_MESSAGES: Final = _declare()
