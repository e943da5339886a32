"""The cases of tests/conformance, those that the vectors of composition and of work keys make among them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]

FOLDER: Final = Path(__file__).resolve().parents[2] / "tests" / "conformance"
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the matrix. `sidecar`, `opening` and `steps` are as in the files; the README there explains them."""

    group: str
    name: str
    sidecar: Any
    opening: Json
    steps: tuple[Json, ...]

    @property
    def title(self) -> str:
        """The row's name."""
        return f"{self.group}/{self.name}"


def chosen(pattern: str) -> list[Case]:
    """The cases whose title the pattern names, as a shell would. Raises ValueError at a file of another format."""
    return [case for case in _all() if fnmatch(case.title, pattern)]


def _all() -> Iterator[Case]:
    for path in sorted((FOLDER / "cases").glob("*.json")):
        file = _read(path)
        for case in file["cases"]:
            yield Case(file["group"], case["name"], case["sidecar"], case.get("open", {}), tuple(case["steps"]))
    yield from _compositions(_read(FOLDER / "compose.json"))
    yield from _work_keys(_read(FOLDER / "work_key.json"))


def _read(path: Path) -> Json:
    file: Json = json.loads(path.read_text(encoding="utf-8"))
    if file.get("format", FORMAT) != FORMAT:
        raise ValueError(f"{path.name} has format {file['format']}, and this tool reads {FORMAT}")
    return file


def _compositions(file: Json) -> Iterator[Case]:
    """Each vector by a sidecar that gives the block and no message, so that the client's own bytes are seen."""
    keys = {name: name for name in ("agent_handle", "conversation_key", "turn_id", "work_key")}
    for vector in file["cases"]:
        state = vector["history_state"]
        read = {"status": "INTERNAL"} if state == "unread" else {"history": vector["history"], "state": state}
        parts = {name: vector[name] for name in ("phase", "context", "task", "prior_work")}
        steps = (
            {"do": "begin", **keys},
            {"do": "user_message", **parts, "expect": {"text": vector["message"]}},
        )
        script = {"History": [read], "UserMessage": [{"status": "INTERNAL"}]}
        yield Case("compose", vector["name"], {"script": script}, {}, steps)


def _work_keys(file: Json) -> Iterator[Case]:
    for vector in file["cases"]:
        step = {"do": "work_key", "trigger_ids": vector["trigger_ids"], "expect": {"work_key": vector["work_key"]}}
        yield Case("work_key", vector["name"], "dead", {}, (step,))
