"""What an engine's telemetry is told, as the shells see it: nothing, unless OpenTelemetry is there to take it."""

from typing import Final, Protocol

from turnledger.events import Event
from turnledger.failure import Failure

#: gRPC metadata: pairs of a lower-case key and its value.
Metadata = tuple[tuple[str, str], ...]


class Call(Protocol):
    """One try on the wire, under way. `metadata` joins whatever the sidecar does for it to the engine's trace."""

    @property
    def metadata(self) -> Metadata: ...

    def end(self, failure: Failure | None) -> None:
        """It is over. Called once, also for a call whose task was cancelled."""
        ...


class Telemetry(Protocol):
    """Where calls and events go. From many tasks and threads at once, and never for long."""

    def call(self, method: str, target: str) -> Call:
        """A try begins, in the caller's own context. `method` is such as `turnledger.v1.Record/Append`."""
        ...

    def observe(self, event: Event) -> None:
        """Something happened, in the context of whoever caused it."""
        ...


class NoTelemetry:
    """Takes everything and tells nobody."""

    metadata: Final[Metadata] = ()

    def call(self, method: str, target: str) -> Call:  # noqa: ARG002  a Telemetry
        """Nothing to end."""
        return self

    def end(self, failure: Failure | None) -> None:
        """Nothing to tell."""

    def observe(self, event: Event) -> None:
        """Nothing to tell."""


NO_TELEMETRY: Final = NoTelemetry()


def installed() -> Telemetry:
    """OpenTelemetry's global providers where its API is installed (`turnledger[otel]`), else nothing.

    Without an SDK the API drops what it is given. Where its own variables keep it from loading, so does this.
    """
    try:
        from turnledger.otel import OpenTelemetry
    except (ImportError, ValueError):
        return NO_TELEMETRY
    return OpenTelemetry()
