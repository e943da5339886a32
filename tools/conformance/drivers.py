"""The languages' drivers as processes: a command a line in, an answer a line out."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
GO: Final = ROOT / "clients" / "go"
NODE: Final = ROOT / "clients" / "node"

#: Seconds that one command may take before its driver counts as stuck.
PATIENCE_S: Final = 60.0
#: Seconds that a driver may take to end once its input has.
ENDING_S: Final = 20.0
_LINE_BYTES: Final = 64 * 1024 * 1024


class NoDriver(Exception):
    """A language cannot be driven; the message says why, and what would help."""


@dataclass(frozen=True, slots=True)
class Language:
    """A column of the matrix. `build` is run first, in `folder`, where there is one; `start` starts the driver."""

    name: str
    start: tuple[str, ...]
    build: tuple[str, ...] = ()
    folder: Path = ROOT


def languages(scratch: Path) -> dict[str, Language]:
    """Every language that has a driver; what is built on the way goes to `scratch`."""
    python = (sys.executable, "-m", "tests.conformance.driver")
    go = str(scratch / "go-driver")
    every = (
        Language("python", python),
        Language("python-asyncio", (*python, "--asyncio")),
        Language("go", (go,), ("go", "build", "-o", go, "./conformance"), GO),
        Language(
            "node",
            ("node", str(NODE / "dist" / "conformance" / "driver.js")),
            ("npm", "run", "--silent", "build"),
            NODE,
        ),
    )
    return {language.name: language for language in every}


class Driver:
    """A driver that runs. One command at a time; `log` is what it says on standard error."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        if process.stdin is None or process.stdout is None:
            raise TypeError("a driver is spoken to through pipes")
        self._input, self._output = process.stdin, process.stdout
        self._process = process
        self._log = log
        self._asked = 0

    async def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """What the driver answers, without the id. Raises NoDriver if it ended, is stuck or leaves the protocol."""
        self._asked += 1
        try:
            self._input.write(json.dumps({"id": self._asked, **command}).encode() + b"\n")
            await self._input.drain()
            line = await asyncio.wait_for(self._output.readline(), PATIENCE_S)
        except TimeoutError:
            raise NoDriver(f"no answer to {command['do']} in {PATIENCE_S:.0f} s") from None
        except (ConnectionError, ValueError) as error:
            raise NoDriver(f"{command['do']}: {error}") from error
        if not line:
            raise NoDriver(f"the driver ended at {command['do']}:\n{self._log.read_text(errors='replace')[-2000:]}")
        return self._read(line, command["do"])

    async def end(self) -> int:
        """End the driver's input, and wait for its exit code. One that does not end in time is killed."""
        self._input.close()
        try:
            return await asyncio.wait_for(self._process.wait(), ENDING_S)
        except TimeoutError:
            self._process.kill()
            return await self._process.wait()

    def _read(self, line: bytes, asked: str) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = json.loads(line)
            answered = answer.pop("id")
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise NoDriver(f"{asked}: the answer is no line of the protocol") from error
        if answered != self._asked:
            raise NoDriver(f"{asked}: the answer is for command {answered}, not {self._asked}")
        return answer


async def build(language: Language) -> None:
    """Build the language's driver. Raises NoDriver."""
    if not language.build:
        return
    try:
        process = await asyncio.create_subprocess_exec(
            *language.build,
            cwd=language.folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        raise NoDriver(f"{language.build[0]} in {language.folder}: {error.strerror}") from error
    said, _ = await process.communicate()
    if process.returncode != 0:
        raise NoDriver(f"{' '.join(language.build)}: {said.decode(errors='replace').strip()}")


@asynccontextmanager
async def driving(language: Language, log: Path) -> AsyncIterator[Driver]:
    """Run the driver until the block ends, its log in a file. Raises NoDriver if it cannot be started or ends badly."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        with log.open("w") as errors:
            process = await asyncio.create_subprocess_exec(
                *language.start,
                cwd=ROOT,
                env=environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=_LINE_BYTES,
            )
    except OSError as error:
        raise NoDriver(f"{language.start[0]}: {error.strerror}") from error
    driver = Driver(process, log)
    try:
        yield driver
    finally:
        code = await driver.end()
    if code != 0:
        raise NoDriver(f"the driver ended with {code}")
