"""The gRPC server: which RPCs there are, their deadlines, and the place where it listens."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc
from turnledger.limits import TRANSPORT_BYTES
from turnledger.v1 import record_pb2, render_pb2

from sidecar.config.listen import Address
from sidecar.domain.errors import Code, LedgerError
from sidecar.server.guard import Guard, Rpc
from sidecar.server.servicers import RecordServicer, RenderServicer

if TYPE_CHECKING:
    from sidecar.server.guard import Handler

#: Readable and writable by the owner and the group: the engine runs as another user of the socket's group.
_SOCKET_UMASK: Final = 0o117

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", TRANSPORT_BYTES),
    ("grpc.max_send_message_length", TRANSPORT_BYTES),
    # Otherwise a second sidecar shares the port unnoticed, and each gets half of the calls.
    ("grpc.so_reuseport", 0),
)


class Server:
    """The ledger's server, not yet listening."""

    def __init__(self, record: RecordServicer, render: RenderServicer, guard: Guard) -> None:
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler("turnledger.v1.Record", _record_handlers(record, guard)),
                grpc.method_handlers_generic_handler("turnledger.v1.Render", _render_handlers(render, guard)),
            )
        )

    async def start(self, address: Address) -> Address:
        """Listen and serve. Answers the address with the port that it got. Raises `RuntimeError` if it is taken.

        A socket is its owner's and its group's, which is the folder's if that is setgid, else the process's.
        """
        before = os.umask(_SOCKET_UMASK)
        try:
            port = self._server.add_insecure_port(address.target)
        finally:
            os.umask(before)
        await self._server.start()
        return address if address.socket else Address(host=address.host, port=port)

    async def stop(self, grace_s: float) -> None:
        """Stop listening at once, and give calls under way `grace_s` seconds to finish."""
        await self._server.stop(grace_s)


def give_socket(path: Path, group: int | str) -> None:
    """Give the socket to a group, of which the process is a member. Raises `LedgerError` CONFIG_INVALID."""
    try:
        shutil.chown(path, group=group)
    except (LookupError, OSError) as error:
        reason = "there is no such group" if isinstance(error, LookupError) else error.strerror
        raise LedgerError(
            Code.CONFIG_INVALID, f"sidecar.socket_group: the socket cannot be given to {group!r}: {reason}"
        ) from error


def _record_handlers(record: RecordServicer, guard: Guard) -> "dict[str, Handler]":
    return {
        "Append": guard.handler(Rpc("Append", record_pb2.AppendRequest, record.append, 30.0)),
        "Fit": guard.handler(Rpc("Fit", record_pb2.FitRequest, record.fit, 30.0)),
        "Settle": guard.handler(Rpc("Settle", record_pb2.SettleRequest, record.settle, 30.0)),
        "Forget": guard.handler(Rpc("Forget", record_pb2.ForgetRequest, record.forget, 300.0)),
    }


def _render_handlers(render: RenderServicer, guard: Guard) -> "dict[str, Handler]":
    return {
        "History": guard.handler(Rpc("History", render_pb2.HistoryRequest, render.history, 5.0)),
        "UserMessage": guard.handler(Rpc("UserMessage", render_pb2.UserMessageRequest, render.user_message, 2.0)),
    }
