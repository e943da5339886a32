"""The one table from the ledger's error codes to gRPC statuses."""

from dataclasses import dataclass
from typing import Final

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from sidecar.domain.errors import Code, LedgerError

_DOMAIN: Final = "turnledger"


@dataclass(frozen=True, slots=True)
class Status:
    """How a code goes over the wire. `retry_after_s` (seconds) is set where an early retry makes sense."""

    code: grpc.StatusCode
    retry_after_s: float | None = None


STATUSES: Final = {
    Code.INVALID: Status(grpc.StatusCode.INVALID_ARGUMENT),
    Code.TOO_LARGE: Status(grpc.StatusCode.RESOURCE_EXHAUSTED),
    Code.STORE_UNAVAILABLE: Status(grpc.StatusCode.UNAVAILABLE, retry_after_s=0.2),
    Code.STORE_FULL: Status(grpc.StatusCode.RESOURCE_EXHAUSTED),
    Code.STORE_IO: Status(grpc.StatusCode.UNAVAILABLE, retry_after_s=0.2),
    Code.STORE_CORRUPT: Status(grpc.StatusCode.DATA_LOSS),
    Code.STORE_NEWER: Status(grpc.StatusCode.FAILED_PRECONDITION),
    Code.CONFIG_INVALID: Status(grpc.StatusCode.FAILED_PRECONDITION),
    Code.OVERLOADED: Status(grpc.StatusCode.RESOURCE_EXHAUSTED, retry_after_s=0.05),
    Code.DEADLINE: Status(grpc.StatusCode.DEADLINE_EXCEEDED),
    Code.INTERNAL: Status(grpc.StatusCode.INTERNAL),
}


def to_status(error: LedgerError) -> grpc.Status:
    """The error as a gRPC status with its `google.rpc` details."""
    status = STATUSES[error.code]
    message = status_pb2.Status(
        code=code_pb2.Code.Value(status.code.name),
        message=error.message,
        details=[_packed(detail) for detail in _details(error, status)],
    )
    return rpc_status.to_status(message)


def _details(
    error: LedgerError, status: Status
) -> list[error_details_pb2.ErrorInfo | error_details_pb2.BadRequest | error_details_pb2.RetryInfo]:
    details: list[error_details_pb2.ErrorInfo | error_details_pb2.BadRequest | error_details_pb2.RetryInfo] = [
        error_details_pb2.ErrorInfo(reason=error.code.value, domain=_DOMAIN)
    ]
    if error.violations:
        violation = error_details_pb2.BadRequest.FieldViolation
        found = [violation(field=each.field, description=each.description) for each in error.violations]
        details.append(error_details_pb2.BadRequest(field_violations=found))
    if status.retry_after_s is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(round(status.retry_after_s * 1000))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    return details


def _packed(
    detail: error_details_pb2.ErrorInfo | error_details_pb2.BadRequest | error_details_pb2.RetryInfo,
) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed
