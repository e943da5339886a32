"""Translation of SQLite's errors into the ledger's, in one place."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from sidecar.domain.errors import Code, LedgerError

_FULL = LedgerError(Code.STORE_FULL, "the disk that holds the store is full; free space or enlarge the volume")
_UNAVAILABLE = LedgerError(Code.STORE_UNAVAILABLE, "the store is held by another program or cannot be opened; retry")
_NO_MEMORY = LedgerError(
    Code.STORE_UNAVAILABLE, "there is no memory for what the store needs; retry, or raise the limit"
)
_INTERRUPTED = LedgerError(Code.STORE_UNAVAILABLE, "the store is closing; retry")
_CORRUPT = LedgerError(Code.STORE_CORRUPT, "the store is damaged; restore it from a backup")
_READ_ONLY = LedgerError(
    Code.STORE_IO, "the store cannot be written; check that its volume is mounted for writing and the file's owner"
)
_IO = LedgerError(Code.STORE_IO, "the disk that holds the store reported an error; retry")

_TRANSLATIONS: tuple[tuple[tuple[type[apsw.Error], ...], LedgerError], ...] = (
    ((apsw.FullError,), _FULL),
    ((apsw.BusyError, apsw.LockedError, apsw.CantOpenError, apsw.ProtocolError), _UNAVAILABLE),
    ((apsw.NoMemError,), _NO_MEMORY),
    ((apsw.InterruptError, apsw.ConnectionClosedError), _INTERRUPTED),
    ((apsw.CorruptError, apsw.NotADBError), _CORRUPT),
    ((apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError), _READ_ONLY),
    ((apsw.IOError,), _IO),
)


def translate(error: apsw.Error) -> LedgerError | None:
    """The ledger's error for SQLite's, or None for one that only a bug can cause (a constraint, a misuse).

    A value of a wrong type is damage: no statement writes one, and a change of the row that holds it fails by it.
    """
    if (
        isinstance(error, apsw.ConstraintError)
        and getattr(error, "extendedresult", None) == apsw.SQLITE_CONSTRAINT_DATATYPE
    ):
        return LedgerError(_CORRUPT.code, _CORRUPT.message)
    for kinds, translation in _TRANSLATIONS:
        if isinstance(error, kinds):
            return LedgerError(translation.code, translation.message)
    return None


def damaged(how: str) -> LedgerError:
    """The error for damage that SQLite does not see. `how` says it without a word of what was stored."""
    return LedgerError(_CORRUPT.code, f"{_CORRUPT.message} ({how})")


@contextmanager
def translated() -> Iterator[None]:
    """Raise the ledger's error for SQLite's, and for a text column that holds no text. A bug goes through as it is."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise LedgerError(_CORRUPT.code, _CORRUPT.message) from error
    except apsw.Error as error:
        translation = translate(error)
        if translation is None:
            raise
        raise translation from error


@contextmanager
def translated_unseen() -> Iterator[None]:
    """The same while a file is looked at first: what only a bug could cause later is then a file that is not ours."""
    try:
        with translated():
            yield
    except apsw.Error as error:
        raise LedgerError(Code.STORE_CORRUPT, "the store's schema is not what this program builds") from error
