"""What a refused call carried, read back from the wire."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, cast

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status with its details. `fields` are BadRequest's, `retry_after_s` is RetryInfo's, in seconds."""

    code: grpc.StatusCode
    message: str
    reason: str = ""
    domain: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    retry_after_s: float | None = None
    raw: str = ""


async def refused(call: Awaitable[object]) -> Refusal:
    """Await a call that must fail, and read what it carried."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return read_refusal(raised.value)


def read_refusal(error: grpc.aio.AioRpcError) -> Refusal:
    """What a failed call carried."""
    status = rpc_status.from_call(cast(Any, error))
    parts: dict[str, Any] = {}
    for packed in status.details if status is not None else ():
        info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
        if packed.Unpack(info):
            parts |= {"reason": info.reason, "domain": info.domain}
        elif packed.Unpack(bad):
            parts["fields"] = {each.field: each.description for each in bad.field_violations}
        elif packed.Unpack(retry):
            parts["retry_after_s"] = retry.retry_delay.ToMilliseconds() / 1000
    raw = f"{error.details()} {error.debug_error_string()} {list(error.trailing_metadata())}"
    return Refusal(error.code(), error.details() or "", raw=raw, **parts)
