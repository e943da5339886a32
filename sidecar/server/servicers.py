"""The RPCs: each decodes, calls its service, encodes."""

from turnledger.v1 import record_pb2, render_pb2

from sidecar.server import decode, encode
from sidecar.services.apart import apart
from sidecar.services.record import Record
from sidecar.services.render import Render


class RecordServicer:
    """`turnledger.v1.Record`."""

    def __init__(self, record: Record) -> None:
        self._record = record

    async def append(self, request: record_pb2.AppendRequest) -> record_pb2.AppendResponse:
        call = await apart(request.ByteSize(), lambda: decode.append(request))
        return encode.appended(await self._record.append(call.key, call.run_end, call.turn))

    async def fit(self, request: record_pb2.FitRequest) -> record_pb2.FitResponse:
        conversation, fits = await apart(request.ByteSize(), lambda: decode.fit(request))
        return encode.fitted(await self._record.fit(conversation, fits))

    async def settle(self, request: record_pb2.SettleRequest) -> record_pb2.SettleResponse:
        return encode.settled(await self._record.settle(decode.settle(request)))

    async def forget(self, request: record_pb2.ForgetRequest) -> record_pb2.ForgetResponse:
        return encode.forgotten(await self._record.forget(decode.forget(request)))


class RenderServicer:
    """`turnledger.v1.Render`."""

    def __init__(self, render: Render) -> None:
        self._render = render

    async def history(self, request: render_pb2.HistoryRequest) -> render_pb2.HistoryResponse:
        call = decode.history(request)
        return encode.turn_start(await self._render.history(call.key, call.hard_limit))

    async def user_message(self, request: render_pb2.UserMessageRequest) -> render_pb2.UserMessageResponse:
        def composed() -> render_pb2.UserMessageResponse:
            return encode.user_message(*self._render.user_message(*decode.user_message(request)))

        return await apart(request.ByteSize(), composed)
