"""The settings, their defaults and their bounds."""

from typing import Annotated

import msgspec

from sidecar.domain.limits import MAX_ENTRIES_DEFAULT

#: Where the sidecar listens, and keeps its store, unless told otherwise: what the volumes of the deployment mount.
DEFAULT_LISTEN = "unix:///run/turnledger/turnledger.sock"
DEFAULT_STORE = "/var/lib/turnledger/store.db"


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


class Sidecar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The process's own section: `listen` is `unix:///path` or a loopback `host:port`; `store` is the file's path."""

    listen: str = DEFAULT_LISTEN
    store: Annotated[str, msgspec.Meta(min_length=1)] = DEFAULT_STORE
    limits: Limits = Limits()


class Settings(msgspec.Struct, frozen=True):
    """The whole file. Other sections at its top are the engine's."""

    turn_engine: TurnEngine = TurnEngine()
    sidecar: Sidecar = Sidecar()
