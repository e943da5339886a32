"""The page's wire examples: found, held against what came, and written anew.

A fence of `bash wire` sets the shell up; one of `console wire STATE` holds commands (`$ `, carried on by `> `) and what
each printed. STATE says how the sidecar is; without it, well.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

_FENCE: Final = re.compile(r"^```(?P<info>(bash|console) wire[ \w-]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)

#: Texts longer than this are cut on the page, which is for people. The compared part is what stands there.
SHOWN: Final = 1200
ELISION: Final = "…"

#: Minted anew each time, or for a person: compared by their kind, not by their value.
_FREE: Final = frozenset({"entryId", "orderId", "message"})


@dataclass(frozen=True, slots=True)
class Example:
    """One command of the page, and what the page says that it prints."""

    state: str
    command: str
    printed: str


def set_up(page: str) -> str:
    """What a shell needs to know before it runs the examples."""
    return "".join(found["body"] for found in _FENCE.finditer(page) if found["info"].startswith("bash"))


def examples(page: str) -> list[Example]:
    """The page's examples, in order."""
    return [example for found in _FENCE.finditer(page) for example in _of(found)]


def rewritten(page: str, print_of: Callable[[Example], str]) -> str:
    """The page, with what each example printed."""

    def body(found: re.Match[str]) -> str:
        if found["info"].startswith("bash"):
            return found[0]
        said = [f"{_shown_command(example.command)}{print_of(example)}" for example in _of(found)]
        return f"```{found['info']}\n{''.join(said)}```"

    return _FENCE.sub(body, page)


def _of(found: re.Match[str]) -> Iterator[Example]:
    if found["info"].startswith("bash"):
        return
    state = found["info"].removeprefix("console wire").strip()
    for part in re.split(r"^\$ ", found["body"], flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        carried = 1
        while carried < len(lines) and lines[carried].startswith("> "):
            carried += 1
        command = "\n".join([lines[0], *(line[2:] for line in lines[1:carried])])
        yield Example(state, command, "\n".join(lines[carried:]))


def _shown_command(command: str) -> str:
    first, *others = command.splitlines()
    return "".join([f"$ {first}\n", *(f"> {line}\n" for line in others)])


def shortened(printed: str) -> str:
    """What a command printed, as the page shows it: one value per line, long texts cut."""
    if not printed.strip():
        return ""
    return json.dumps(_cut(json.loads(printed)), indent=2, ensure_ascii=False) + "\n"


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cut(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_cut(each) for each in value]
    if isinstance(value, str) and len(value) > SHOWN:
        return value[:SHOWN].rstrip() + ELISION
    return value


def agrees(printed: str, shown: str) -> bool:
    """Whether what came is what the page shows, but for what is minted anew and what the page cuts."""
    if not printed.strip() or not shown.strip():
        return printed.strip() == shown.strip()
    return _agrees(json.loads(printed), json.loads(shown))


def _agrees(came: Any, shown: Any) -> bool:
    if isinstance(came, dict) and isinstance(shown, dict):
        return came.keys() == shown.keys() and all(
            (bool(came[name]) and isinstance(came[name], str)) if name in _FREE else _agrees(came[name], shown[name])
            for name in came
        )
    if isinstance(came, list) and isinstance(shown, list):
        return len(came) == len(shown) and all(map(_agrees, came, shown))
    if isinstance(came, str) and isinstance(shown, str) and shown.endswith(ELISION):
        return came.startswith(shown.removesuffix(ELISION))
    return bool(came == shown)


def last_order(printed: str) -> str:
    """The id of the last order in what a command printed; empty where it holds none."""
    found = re.findall(r'"orderId": "([^"]+)"', printed)
    return found[-1] if found else ""
