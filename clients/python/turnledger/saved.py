"""A turn as text: JSON in ASCII, versioned, good on any sidecar and for every later version of this library."""

import json
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any, Final, TypeVar, get_type_hints

from turnledger.answers import History, HistoryState, Phase
from turnledger.entry import CallKind, ToolCall
from turnledger.failure import Failure, Violation
from turnledger.steps import TurnKeys
from turnledger.withhold import withheld

VERSION: Final = 1
_VERSION_KEY: Final = "turnledger_saved_turn"


class InvalidSavedTurn(ValueError):
    """The text is no saved turn, was damaged, or comes from a newer version of this library."""


@dataclass(frozen=True, slots=True)
class SavedTurn:
    """Everything of a turn that outlives the process it ran in."""

    keys: TurnKeys
    history: History | None
    read_failure: Failure | None
    already_recorded: bool
    iterations: dict[Phase, int]
    calls: tuple[ToolCall, ...]


def dump(saved: SavedTurn) -> str:
    """The turn as text. Values of sensitive arguments are withheld."""
    calls = [asdict(replace(call, arguments=withheld(call.arguments, call.sensitive))) for call in saved.calls]
    return json.dumps({_VERSION_KEY: VERSION, **asdict(saved), "calls": calls})


def load(text: str) -> SavedTurn:
    """The turn that `dump` wrote. Raises InvalidSavedTurn."""
    try:
        data = json.loads(text)
        version = data[_VERSION_KEY]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidSavedTurn("this is no saved turn") from error
    if type(version) is not int or version != VERSION:
        raise InvalidSavedTurn(f"the turn was saved in version {version!r}, and this library reads version {VERSION}")
    try:
        return _saved(data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidSavedTurn("the saved turn is damaged") from error


def _saved(data: dict[str, Any]) -> SavedTurn:
    return SavedTurn(
        keys=_build(TurnKeys, data["keys"]),
        history=_history(data["history"]),
        read_failure=_failure(data["read_failure"]),
        already_recorded=_checked(data["already_recorded"], bool),
        iterations={Phase(phase): _checked(count, int) for phase, count in data["iterations"].items()},
        calls=tuple(_call(call) for call in _checked(data["calls"], list)),
    )


def _history(data: dict[str, Any] | None) -> History | None:
    if data is None:
        return None
    history = _build(History, data, state=HistoryState(data["state"]))
    if sha256(history.text.encode()).hexdigest() != history.digest:
        raise ValueError("the block is not the one that was frozen")
    return history


def _failure(data: dict[str, Any] | None) -> Failure | None:
    if data is None:
        return None
    return _build(
        Failure,
        data,
        violations=tuple(_build(Violation, violation) for violation in _checked(data["violations"], list)),
    )


def _call(data: dict[str, Any]) -> ToolCall:
    sensitive = tuple(_checked(name, str) for name in _checked(data["sensitive"], list))
    return _build(ToolCall, data, kind=CallKind(data["kind"]), sensitive=sensitive)


_PLAIN: Final[dict[Any, tuple[type, ...]]] = {
    str: (str,),
    int: (int,),
    bool: (bool,),
    float | None: (float, int, type(None)),
}
_T = TypeVar("_T")


def _build(of: type[_T], data: dict[str, Any], **converted: object) -> _T:
    """An `of` from its JSON form, plain fields checked for their type and the others given `converted`."""
    for name, kind in get_type_hints(of).items():
        if name not in converted and type(data[name]) not in _PLAIN[kind]:
            raise ValueError(f"{name} has a wrong type")
    return of(**{**data, **converted})


def _checked(value: Any, kind: type[_T]) -> _T:
    if type(value) is not kind:
        raise ValueError("a value has a wrong type")
    return value
