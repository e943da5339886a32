"""The settings, their defaults and their bounds."""

import os
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from sidecar.domain.limits import MAX_ENTRIES_DEFAULT

#: Where the sidecar listens, and keeps its store, unless told otherwise: what the volumes of the deployment mount.
DEFAULT_LISTEN = "unix:///run/turnledger/turnledger.sock"
DEFAULT_STORE = "/var/lib/turnledger/store.db"

#: Where health is served unless told otherwise: this machine alone. kubelet dials the pod, so a deployment opens it.
DEFAULT_HEALTH = "127.0.0.1:7412"


class ConversationSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The part that the engine's own file carries.

    `enabled` is the kill switch. `max_entries` is how many entries of one conversation are kept. `retention_days` is
    how long rows are kept, in days.
    """

    enabled: bool = True
    max_entries: Annotated[int, msgspec.Meta(ge=1, le=500)] = MAX_ENTRIES_DEFAULT
    retention_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] = 30


class TurnEngine(msgspec.Struct, frozen=True):
    """The engine's section: every key but ours is the engine's, and let be."""

    conversation_session: ConversationSession = ConversationSession()


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`concurrent_calls`: how many calls are served at once; what comes beyond is told to come back."""

    concurrent_calls: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 512


class Sweep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`interval_s`: seconds of uptime between two sweeps. A day at most, so that no retention is shorter than it."""

    interval_s: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 3600


class Telemetry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the process logs on stderr, and how; all other telemetry is configured by the standard `OTEL_*` alone.

    `log_format` None is JSON where stderr is no terminal, and text where it is one.
    """

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "text"] | None = None


class Sidecar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The process's own section.

    `listen` is `unix:///path` or a loopback `host:port`. `socket_group` is the group that may use the socket, a name or
    a gid; None leaves it the folder's (setgid) or the process's. `health` is the `host:port` of grpc.health.v1 alone,
    on any address. `store` is the file's path.
    """

    listen: str = DEFAULT_LISTEN
    socket_group: int | str | None = None
    health: str = DEFAULT_HEALTH
    store: Annotated[str, msgspec.Meta(min_length=1)] = DEFAULT_STORE
    limits: Limits = Limits()
    sweep: Sweep = Sweep()
    telemetry: Telemetry = Telemetry()

    @property
    def store_file(self) -> Path:
        """The store itself, where `store` is a link too: its log, its lock and its sockets are beside that one."""
        return Path(os.path.realpath(self.store))


class Settings(msgspec.Struct, frozen=True):
    """The whole file. Other sections at its top are the engine's."""

    turn_engine: TurnEngine = TurnEngine()
    sidecar: Sidecar = Sidecar()
