"""The docs' examples run. A fence that opens with ```python run is part of its page's program; others are only shown.

A page's runnable fences run in order as one program, in a process of its own and against a real sidecar. Whatever
Unix-socket address they name is that sidecar's: a page can show the address that a reader will have.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from markdown_it import MarkdownIt

ROOT: Final = Path(__file__).resolve().parents[2]
README: Final = ROOT / "README.md"
PAGES: Final = sorted((ROOT / "docs").rglob("*.md"))

ADDRESS: Final = re.compile(r"unix:///[\w./-]+")
START_SECONDS: Final = 10
RUN_SECONDS: Final = 30


def program(markdown: str) -> str:
    """The page's runnable fences, each at its own line number, so that a traceback names the page's line."""
    lines = [""] * (markdown.count("\n") + 1)
    for token in MarkdownIt().parse(markdown):
        if token.type == "fence" and token.info.split() == ["python", "run"] and token.map:
            start = token.map[0] + 1
            code = token.content.splitlines()
            lines[start : start + len(code)] = code
    return "\n".join(lines).rstrip()


RUNNABLE: Final = [README, *(page for page in PAGES if program(page.read_text()))]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a sidecar that runs as an operator would start it."""
    # A folder of its own under the system's: a socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="turnledger-") as folder, (Path(folder) / "log").open("w+") as log:
        socket = Path(folder) / "turnledger.sock"
        serve = ["serve", "--listen", f"unix://{socket}", "--store", f"{folder}/store.db"]
        sidecar = subprocess.Popen([Path(sys.executable).parent / "turnledger", *serve], stdout=log, stderr=log)
        try:
            _await(socket, sidecar, Path(log.name))
            yield f"unix://{socket}"
        finally:
            sidecar.send_signal(signal.SIGTERM)
            sidecar.wait(START_SECONDS)


def _await(socket: Path, sidecar: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not socket.exists():
        if sidecar.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"the sidecar did not start:\n{log.read_text()}")
        time.sleep(0.02)


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_pages_examples_run(page: Path, address: str, tmp_path: Path) -> None:
    """A page's program ends well, with warnings as errors."""
    code = program(page.read_text())
    assert code, f"{page.name} shows no example that runs"
    script = tmp_path / f"{page.stem}_md.py"
    script.write_text(ADDRESS.sub(address, code))
    ran = subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDEVMODE": "1"},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, f"{page.relative_to(ROOT)}, by its own line numbers:\n{ran.stdout}{ran.stderr}"
