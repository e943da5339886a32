"""A sidecar of the example's own. In production it runs beside the engine, and nobody's engine starts it.

Take from it: an engine need not wait for its sidecar, since every call fails open. This one waits so that the first
turn that you watch has its ledger.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PATIENCE_S: Final = 15.0


@contextmanager
def sidecar_in(folder: Path) -> Iterator[str]:
    """Run a sidecar with socket, store and log in the folder. Yields its address."""
    socket = folder / "turnledger.sock"
    serve = [
        sys.executable,
        "-m",
        "sidecar",
        "serve",
        "--listen",
        f"unix://{socket}",
        "--store",
        str(folder / "store.db"),
    ]
    with (folder / "sidecar.log").open("ab") as log:
        # A session of its own: Ctrl-C reaches the engine, which then ends the sidecar.
        process = subprocess.Popen(serve, stdout=log, stderr=log, start_new_session=True)
        try:
            _await(socket, process)
            yield f"unix://{socket}"
        finally:
            process.terminate()
            process.wait(_PATIENCE_S)


def _await(socket: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not socket.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
