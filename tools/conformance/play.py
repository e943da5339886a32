"""Plays one case in one language, step by step."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from tools.conformance.cases import Case, Json
from tools.conformance.drivers import Driver
from tools.conformance.expectations import complaints
from tools.conformance.sidecars import Sidecar
from tools.conformance.texts import with_kept

#: What a step has for the tool, not for the driver.
_OURS = ("expect", "within", "no_sooner", "keep", "by")


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of one case in one language. `notes` say what was wrong, one line each."""

    verdict: str
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return self.verdict == PASSED


PASSED = "ok"
FAILED = "FAIL"
SKIPPED = "SKIP"


async def play(case: Case, driver: Driver, reference: Driver, sidecar: Sidecar) -> Cell:
    """Open the case's ledger, take its steps until one is wrong, and close it. Raises NoDriver if the driver goes."""
    kept: dict[str, Any] = {}
    if any(step.get("by") for step in case.steps):
        await reference.ask({"do": "open", "target": sidecar.target})
    for at, step in enumerate(({"do": "open", **case.opening}, *case.steps, {"do": "close"})):
        began = time.monotonic()
        answer = await _answer(with_kept(step, kept), driver, reference, sidecar)
        seconds = time.monotonic() - began
        if answer.get("refused") == "unknown_command":
            return Cell(SKIPPED, (f"the driver does not know {step['do']}",))
        found = _judged(with_kept(step.get("expect", {}), kept), answer)
        if seconds > step.get("within", seconds):
            found.append(f"it took {seconds:.2f} s of at most {step['within']} s")
        if seconds < step.get("no_sooner", 0):
            found.append(f"it took {seconds:.2f} s, and {step['no_sooner']} s were to be waited")
        if found:
            where = f"step {at} ({step.get('do') or step.get('tool')})"
            await driver.ask({"do": "close"})
            return Cell(FAILED, tuple(f"{where}: {line}" for line in found))
        for name, path in step.get("keep", {}).items():
            kept[name] = _at(answer["ok"], path)
    return Cell(PASSED)


async def _answer(step: Json, driver: Driver, reference: Driver, sidecar: Sidecar) -> Json:
    match step.get("tool"):
        case "seen":
            return {"ok": sidecar.seen(step["method"])}
        case "wait":
            await asyncio.sleep(step["seconds"])
            return {"ok": {}}
        case "kill":
            await sidecar.kill()
            return {"ok": {}}
        case "start":
            await sidecar.start()
            return {"ok": {}}
    command = {name: value for name, value in step.items() if name not in _OURS}
    if command["do"] == "open":
        command["target"] = command.get("target", sidecar.target)
    return await (reference if step.get("by") == "python" else driver).ask(command)


def _judged(expected: Any, answer: Json) -> list[str]:
    for member in ("failed", "refused"):
        if isinstance(expected, dict) and f"${member}" in expected:
            return complaints({member: expected[f"${member}"]}, answer)
    return complaints({"ok": expected}, answer) if "ok" in answer else [f"it answered {answer}"]


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value
