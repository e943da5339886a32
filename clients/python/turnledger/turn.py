"""What an engine may do with a turn without the sidecar: the same for both shells."""

from collections.abc import Iterable

from turnledger.answers import History
from turnledger.entry import CallKind
from turnledger.failure import Failure
from turnledger.saved import dump
from turnledger.steps import TurnKeys
from turnledger.turn_state import TurnState


class TurnBase:
    """A turn's frozen history, the calls it collects, and its saved form."""

    def __init__(self, state: TurnState) -> None:
        self._state = state

    @property
    def keys(self) -> TurnKeys:
        """The turn's keys, as they are sent: valid Unicode."""
        return self._state.keys

    @property
    def history(self) -> History | None:
        """The frozen history; None if it could not be read, which `read_failure` then explains."""
        return self._state.history

    @property
    def read_failure(self) -> Failure | None:
        """Why the history could not be read; None if it was, also where nothing was there."""
        return self._state.opening.read_failure

    @property
    def already_recorded(self) -> bool:
        """Whether this work key was in the ledger when the turn began: a redelivery, which need not answer twice.

        False too if the history could not be read.
        """
        return self._state.opening.already_recorded

    def called(
        self,
        name: str,
        arguments: str,
        *,
        kind: CallKind | str | None = CallKind.WRITE,
        error: str | None = None,
        sensitive: Iterable[str] = (),
    ) -> None:
        """Collect one tool call for the turn's entry; nothing is sent before `complete`.

        Args:
            name: The tool's name, as the model gave it. Never empty.
            arguments: The JSON text that the model supplied, and no parsed value: parsing loses digits of numbers.
            kind: What the call could do. Whatever is not known is a write.
            error: What a failed call reported, which may be empty; None for a call that succeeded.
            sensitive: Names of top-level arguments whose values are never stored nor shown.

        Raises:
            TypeError: A text is no str, or `sensitive` is one str instead of several.
        """
        self._state.add_call(name, arguments, kind, error, sensitive)

    def save(self) -> str:
        """The turn as text, for the engine's own persisted state: `resume` gives it back with the same frozen bytes.

        JSON in ASCII with a version. It holds the block and the calls so far, so it is as confidential as the
        conversation; values of sensitive arguments are withheld from it.
        """
        return dump(self._state.snapshot())
