"""What a value may be, judged and said for a person. The bounds themselves stand in `settings`."""

import re
from typing import Any, Final

import msgspec

from sidecar.domain.errors import Code, LedgerError

STORE_FORMS: Final = "the path of a file on local storage, such as /var/lib/turnledger/store.db"
GROUP_FORMS: Final = "a group's name or number (gid)"

#: The largest gid: the one above it means "no change" to the kernel.
_GID_MAX: Final = 2**32 - 2

#: Characters shown of a value that is refused: enough to find it in a file.
_SHOWN: Final = 60


def converted(raw: object, wanted: Any, *, from_text: bool) -> Any:
    """The value as its key's type. From a variable or an option, which are always text, `from_text` reads numbers too.

    Raises `LedgerError` CONFIG_INVALID.
    """
    try:
        return msgspec.convert(raw, wanted, strict=not from_text)
    except msgspec.ValidationError as error:
        raise invalid(f"must be {rule(wanted)}, and is {shown(raw)}") from error


def rule(wanted: Any) -> str:
    """What a type takes, in words."""
    return _rule(msgspec.inspect.type_info(wanted))


def _rule(info: msgspec.inspect.Type) -> str:
    match info:
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.IntType(ge=least, le=most):
            return "a whole number" if least is None or most is None else f"a whole number from {least} to {most}"
        case msgspec.inspect.LiteralType(values=values):
            return " or ".join(", ".join(map(str, values)).rsplit(", ", 1))
        case msgspec.inspect.UnionType(types=types):
            return " or ".join(_rule(one) for one in types if not isinstance(one, msgspec.inspect.NoneType))
        case _:
            return "text"


def shown(raw: object) -> str:
    """A refused value, cut to what finds it in a file."""
    match raw:
        case None:
            return "empty"
        case dict() | list():
            return "a section" if isinstance(raw, dict) else "a list"
        case bool():
            return str(raw).lower()
        case int() if raw.bit_length() > 64:
            return "a number far beyond that"
        case str():
            return f"the text {raw!r:.{_SHOWN}}"
        case _:
            return f"{raw!s:.{_SHOWN}}"


def store_path(text: str) -> str:
    """The path of a store. Raises `LedgerError` CONFIG_INVALID for what SQLite would take for something else."""
    no_text = any("\ud800" <= char <= "\udfff" for char in text)  # bytes of the environment that are no UTF-8
    if no_text or "\0" in text or text.endswith("/") or text.startswith((":", "file:")):
        raise invalid(f"{text!r:.100} names no file; use {STORE_FORMS}")
    return text


def socket_group(value: int | str | None) -> int | str | None:
    """A group by name, or by number also where that came as text. Raises `LedgerError` CONFIG_INVALID."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,10}", value):
        value = int(value)
    is_gid = isinstance(value, int) and 0 <= value <= _GID_MAX
    is_name = isinstance(value, str) and re.fullmatch(r"[^\s:,\0]{1,256}", value) and not value.startswith("-")
    if value is None or is_gid or is_name:
        return value
    raise invalid(f"must be {GROUP_FORMS}, and is {shown(value)}")


def invalid(message: str) -> LedgerError:
    """What is wrong with the configuration."""
    return LedgerError(Code.CONFIG_INVALID, message)
