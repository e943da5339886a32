"""Programs that are not Python's: on the path, or installed from Debian where that can be done."""

import os
import shutil
import subprocess
from typing import Final

_QUIET: Final = {"DEBIAN_FRONTEND": "noninteractive"}


def program(name: str, package: str) -> str | None:
    """The program's path; None where it is missing, and this is not root on a Debian machine."""
    found = shutil.which(name)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"[debian] installing {package}")
        for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", package]):
            subprocess.run(
                ["apt-get", *command],  # noqa: S607  wherever it is
                check=False,
                env={**os.environ, **_QUIET},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        found = shutil.which(name)
    return found
