"""Reading the settings file."""

import difflib
import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from sidecar.config.settings import ConversationSession, Limits, Settings, Sidecar, Sweep, Telemetry
from sidecar.domain.errors import Code, LedgerError

_KNOWN = {
    "$.turn_engine.conversation_session": ConversationSession,
    "$.sidecar": Sidecar,
    "$.sidecar.limits": Limits,
    "$.sidecar.sweep": Sweep,
    "$.sidecar.telemetry": Telemetry,
}


#: Sections that may stand empty, as they do where all of their keys are commented out.
_SECTIONS = frozenset({"turn_engine", "conversation_session", "sidecar", "limits", "sweep", "telemetry"})


def read_settings(path: Path | None) -> Settings:
    """The settings of a file, or the defaults where none is named.

    Raises `LedgerError` CONFIG_INVALID, whose message names the place and what would be right there.
    """
    if path is None:
        return Settings()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise _invalid(f"{path} cannot be read: {reason}") from error
    try:
        return parse_settings(text)
    except LedgerError as error:
        raise _invalid(f"{path}: {error.message}") from error


def listen_of(path: Path | None) -> str | None:
    """The address that a file names, also where the rest of it is wrong; None where it names none that can be read.

    An engine looks for its sidecar there, and is to be told what is wrong.
    """
    try:
        data = {} if path is None else yaml.safe_load(path.read_text(encoding="utf-8"))
        listen = data["sidecar"]["listen"]
    except (OSError, yaml.YAMLError, ValueError, RecursionError, LookupError, TypeError):
        return None
    return listen if isinstance(listen, str) else None


def parse_settings(text: str) -> Settings:
    """The settings of a file's text. Raises `LedgerError` CONFIG_INVALID."""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _invalid(f"the settings are no YAML: {_where(error)}") from error
    try:
        return msgspec.convert(_ours(data), Settings)
    except msgspec.ValidationError as error:
        raise _invalid(_with_hint(str(error))) from error


def _ours(data: object) -> object:
    """The data without what is the engine's alone or not there at all: keys that are no text, and empty sections."""
    if data is None:
        return {}
    if not isinstance(data, dict):
        return data
    return {key: _ours(value) if key in _SECTIONS else value for key, value in data.items() if isinstance(key, str)}


def _invalid(message: str) -> LedgerError:
    return LedgerError(Code.CONFIG_INVALID, message)


def _where(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return "it cannot be parsed" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"


def _with_hint(message: str) -> str:
    """Name the nearest key that exists, or all of them, where one is unknown."""
    found = re.fullmatch(r"Object contains unknown field `([^`]*)`(?: - at `([^`]*)`)?", message)
    if found is None:
        return message
    known = _fields(found[2] or "$")
    near = difflib.get_close_matches(found[1], known, 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    return f"unknown key {found[1]} at {found[2] or '$'}; {hint}"


def _fields(place: str) -> list[str]:
    struct: Any = _KNOWN.get(place)
    return [] if struct is None else list(struct.__struct_fields__)
