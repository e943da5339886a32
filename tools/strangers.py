"""Drives real sidecars with grpcurl and ghz, exactly as docs/contract.md shows it, over loopback TCP and a Unix socket.

Exits with 1 where something came that the page does not show, or where the numbers of the load do not add up.
`--update` writes what came into the page instead. Both tools are taken from the PATH, or built with Go at the versions
that the page names.
"""

import asyncio
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from tests.support.running import free_port
from tools.contract import load
from tools.contract.examples import Example, agrees, examples, last_order, rewritten, set_up, shortened
from tools.contract.places import sidecar_that_is
from tools.contract.reference import PAGE, ROOT

BUILT: Final = ROOT / ".venv" / "go"
_INSTALL: Final = re.compile(r"^go install (\S+/(\w+)@\S+)$", re.MULTILINE)

#: Stands on the page for the folder that a sidecar's files are in.
SHOWN_FOLDER: Final = "/etc/turnledger"

#: A command's output by its place on the page.
Printed = dict[int, str]


class Shell:
    """Runs the page's commands, in the checkout, against one address."""

    def __init__(self, page: str, tools: Path, scratch: Path, target: str) -> None:
        self._set_up = set_up(page)
        self.order = ""
        self._environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "TARGET": target,
            "SCRATCH": str(scratch),
            "GOOGLEAPIS": _googleapis(),
        }

    async def run(self, command: str) -> str:
        """What the command prints. Its exit code says little: grpcurl's is the call's status."""
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            f"{self._set_up}\n{command}",
            cwd=ROOT,
            env={**self._environment, "ORDER": self.order},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await process.communicate()
        said = out if out.strip() else errors
        printed = said.decode().replace(self._environment["SCRATCH"], SHOWN_FOLDER)
        self.order = last_order(printed) or self.order
        return printed


async def play(page: str, tools: Path, target: str) -> Printed:
    """Run every example of the page, each state with a sidecar of its own; what each printed."""
    printed: Printed = {}
    numbered = enumerate(examples(page))
    for state, group in groupby(numbered, key=lambda each: each[1].state):
        # A socket's path must be short.
        with tempfile.TemporaryDirectory(prefix="tl-") as scratch:
            folder = Path(scratch)
            listen = target.format(folder=folder, port=free_port())
            async with sidecar_that_is(state, listen, folder):
                shell = Shell(page, tools, folder, listen)
                for place, example in group:
                    printed[place] = await shell.run(example.command)
    return printed


async def burden(page: str, tools: Path, target: str) -> tuple[list[str], float]:
    """Run the page's load; what does not add up, and calls a second."""
    with tempfile.TemporaryDirectory(prefix="tl-") as scratch:
        folder = Path(scratch)
        listen = target.format(folder=folder, port=free_port())
        async with sidecar_that_is("", listen, folder):
            report = await Shell(page, tools, folder, listen).run(load.command(page))
            return await asyncio.to_thread(load.complaints, report, listen), load.rate(report)


async def tools_of(page: str) -> Path:
    """The folder that the tools are in, built where the PATH lacks one."""
    for package, name in _INSTALL.findall(page):
        if shutil.which(name) or (BUILT / name).exists():
            continue
        print(f"building {name}", flush=True)
        built = await asyncio.create_subprocess_exec(
            "go", "install", package, env={**os.environ, "GOBIN": str(BUILT)}, stderr=asyncio.subprocess.PIPE
        )
        _, said = await built.communicate()
        if built.returncode != 0:
            raise SystemExit(f"go install {package}: {said.decode().strip()}")
    return BUILT


def disagreements(page: str, printed: Printed) -> Iterator[str]:
    """Each example that printed what the page does not show."""
    for place, example in enumerate(examples(page)):
        if not agrees(printed[place], example.printed):
            yield f"$ {example.command}\nthe page shows:\n{example.printed}\nit printed:\n{shortened(printed[place])}"


def updated(page: str, printed: Printed) -> str:
    """The page with what its examples printed."""
    places = iter(range(len(printed)))

    def print_of(_example: Example) -> str:
        return shortened(printed[next(places)])

    return rewritten(page, print_of)


def _googleapis() -> str:
    spec = importlib.util.find_spec("google.rpc")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("google.rpc is missing: install googleapis-common-protos")
    return str(Path(spec.submodule_search_locations[0]).parents[1])


async def main() -> int:
    """The command."""
    page = await asyncio.to_thread(PAGE.read_text, encoding="utf-8")
    tools = await tools_of(page)
    wrong: list[str] = []
    for name, target in {"loopback TCP": "127.0.0.1:{port}", "a Unix socket": "unix://{folder}/s"}.items():
        began = time.monotonic()
        printed = await play(page, tools, target)
        if "--update" in sys.argv[1:]:
            page = updated(page, printed)
            await asyncio.to_thread(PAGE.write_text, page, encoding="utf-8")
        wrong += [f"over {name}:\n{each}" for each in disagreements(page, printed)]
        sums, rate = await burden(page, tools, target)
        wrong += [f"the load over {name}: {each}" for each in sums]
        seconds = time.monotonic() - began
        print(f"{len(printed)} examples and a load of {rate:.0f} calls/s over {name}: {seconds:.0f} s", flush=True)
    print("\n\n".join(wrong) if wrong else "All of it is as docs/contract.md shows it, and the numbers add up.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
