"""A real sidecar in a process of its own, started as an operator would."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

#: Seconds that a sidecar may take to start or to stop.
START_S: Final = 20.0


@contextmanager
def real_sidecar(max_entries: int = 20) -> Iterator[str]:
    """Serve until the block ends; gives the target. Everything of it is in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="tl-") as folder, (Path(folder) / "log").open("w") as log:
        socket = Path(folder) / "s"
        config = Path(folder) / "settings.yaml"
        config.write_text(f"turn_engine:\n  conversation_session:\n    max_entries: {max_entries}\n")
        places = ["--listen", f"unix://{socket}", "--store", f"{folder}/store.db"]
        command = ["serve", "--config", str(config), *places]
        process = subprocess.Popen([sys.executable, "-m", "sidecar", *command], stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + START_S
            while not socket.exists():
                assert process.poll() is None, Path(log.name).read_text()
                assert time.monotonic() < deadline, "the sidecar did not start"
                time.sleep(0.02)
            yield f"unix://{socket}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(START_S)
