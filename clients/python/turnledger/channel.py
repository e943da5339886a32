"""How a channel to the sidecar is made, for both shells."""

from typing import Final

#: Every option with its reason. None but these differ from grpc's own.
OPTIONS: Final[list[tuple[str, int]]] = [
    # The library checks what it sends, against the message limit and with a reason. What it is sent it takes whole: a
    # newest entry is shown however long, and a history that the transport refused would be lost for good.
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # Retries are this library's own; grpc's would repeat a message that is never to be asked for twice.
    ("grpc.enable_retries", 0),
    # A sidecar is on this machine: a proxy of the environment has no business between.
    ("grpc.enable_http_proxy", 0),
    # A sidecar that comes back is found within a second, and one that accepts and says nothing is given up after two.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Two ledgers of one process share no connection, so that closing and making one anew starts fresh.
    ("grpc.use_local_subchannel_pool", 1),
]


def checked_target(target: str) -> str:
    """`target`, if it has one of the three forms; raises ValueError for others, a bare path above all."""
    if target.startswith("unix:"):
        if target.removeprefix("unix:").strip("/"):
            return target
    else:
        host, _, port = target.rpartition(":")
        if host and "/" not in host and port.isdecimal():
            return target
    raise ValueError(f'the target must be "unix:///path", "unix:path" or "host:port", not {target!r}')
