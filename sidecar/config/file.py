"""Reading the settings file, whatever there is at its path."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: The most that a settings file may have, in bytes: what Kubernetes takes as a ConfigMap.
FILE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading the file came to: its text, or the trouble that there was. Two that are alike are equal."""

    text: str = ""
    trouble: str = ""


def read_file(path: Path) -> Reading:
    """The file at the path, as it is now. May take as long as the file system does, so never call it on a loop."""
    try:
        with open(path, "rb", opener=_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return Reading(trouble="it cannot be read: it is no file")
            data = file.read(FILE_BYTES + 1)
        if len(data) > FILE_BYTES:
            return Reading(trouble=f"it has more than {FILE_BYTES} bytes, so it is no settings file")
        return Reading(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Reading(trouble="it cannot be read: it is not UTF-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its path is none"
        return Reading(trouble=f"it cannot be read: {reason}")


def _at_once(path: str, flags: int) -> int:
    """A pipe would be waited for until somebody writes to it, long after the file is right again."""
    return os.open(path, flags | os.O_NONBLOCK)
