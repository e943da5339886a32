"""What a killed process, or a disk that lost its power, has left: looked at past the product's own start."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

from sidecar.domain.eligibility import Conversation, TurnKey
from sidecar.domain.errors import LedgerError
from sidecar.store.files import check_file
from tests.support.old_stores import old_store
from tests.torture.auditor import Auditor
from tests.torture.standing import EMPTY, Standing, Turn, read_standing

#: Each backup that was asked for, and what had to be in it.
Backups = Mapping[Path, Sequence[Turn]]

_OLD: Final = Conversation("seat-old", "thread-old")


def prepare_store(store: Path, version: int, count: int, now: int, auditor: Auditor) -> None:
    """Begin with a store of that schema version, in which so many turns are past retention; for version 0 with none."""
    if version == 0:
        return
    auditor.old = [
        Turn(TurnKey(_OLD, f"old-{number}"), f"old reply {number} " + "x" * 300, f"old-id-{number}")
        for number in range(count)
    ]
    old_store(store, version, ((turn.key, turn.text, turn.entry_id) for turn in auditor.old), now)


def audit_store(store: Path, auditor: Auditor) -> Standing:
    """Look at a copy, so that the next start finds the files as they were left."""
    copy = store.with_name("copy")
    copy.mkdir(exist_ok=True)
    for suffix in ("", "-wal", "-journal"):
        left = store.with_name(store.name + suffix)
        (copy / left.name).unlink(missing_ok=True)
        if left.exists():
            shutil.copy(left, copy / left.name)
    standing = EMPTY
    with _readable(auditor, "the store"):
        standing = read_standing(copy / store.name, auditor.turns)
        _check(copy / store.name, auditor)
        auditor.audit(standing)
    shutil.rmtree(copy)
    return standing


def audit_backups(backups: Backups, auditor: Auditor) -> int:
    """Look at each backup that has its name, whether or not it was answered, and remove it. Answers how many have."""
    finished = [path for path in backups if path.exists()]
    for path in finished:
        with _readable(auditor, "a backup that has its name"):
            _check(path, auditor)
            auditor.audit_backup(read_standing(path, auditor.turns), backups[path])
        path.unlink()
    return len(finished)


@contextmanager
def _readable(auditor: Auditor, what: str) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, LedgerError) as error:
        auditor.figures.broken.append(f"{what} cannot be read: {error}")


def _check(path: Path, auditor: Auditor) -> None:
    found = check_file(path, lambda _: None)
    if not found.sound:
        auditor.figures.broken.append(f"check of {path.name}: {found}")
