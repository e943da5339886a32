"""What a settings file says: the values of the keys that are ours, and all that is wrong with them.

Only our own sections are read. What else stands in the file is the engine's: it must be YAML, and is never built into
anything, so an engine's own tags and types are no matter.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from sidecar.config.keys import ROOT, Key, Section
from sidecar.domain.errors import LedgerError

#: What PyYAML raises for text that is no YAML, or for values such as a 13th month, 5 000 digits, deep nesting.
_UNREADABLE: Final = (yaml.YAMLError, ValueError, RecursionError)

#: How alike an engine's key must be to one of ours to be pointed out as a likely slip.
_ALIKE: Final = 0.85


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `line` counts from 1 and is 0 where there is none; `place` is empty for all the file."""

    line: int
    place: str
    text: str


@dataclass(slots=True)
class Document:
    """The keys that a file sets, by place, beside all that is wrong with it and what only looks odd (`notes`)."""

    values: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)


def parse(text: str) -> Document:
    """A file's text, judged. Raises nothing: what is wrong is told, and what is right is there all the same."""
    document = Document()
    try:
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
            _Reader(loader, document).section(ROOT, root)
        finally:
            loader.dispose()
    except _UNREADABLE as error:
        document.problems.append(_syntax(error))
    return document


def _syntax(error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or "it cannot be parsed"
    return Problem(mark.line + 1 if mark else 0, "", f"this is no YAML: {reason:.200}")


class _Reader:
    """Walks the nodes of one document, and fills in what it finds."""

    def __init__(self, loader: yaml.SafeLoader, document: Document) -> None:
        self._loader = loader
        self._document = document

    def section(self, section: Section, node: yaml.Node | None) -> None:
        """Read a section. One that is missing or empty, as where all its keys are commented out, sets nothing."""
        if node is None or node.tag == "tag:yaml.org,2002:null":
            return
        if not isinstance(node, yaml.MappingNode):
            kind = "a list" if isinstance(node, yaml.SequenceNode) else f"the value {node.value!r:.60}"
            self._problem(node, section.place, f"must be a section, an object of `key: value`, and is {kind}")
            return
        self._doubled(section, node)
        self._loader.flatten_mapping(node)
        for name, (key, value) in _last(node).items():
            member = section.members.get(name)
            if isinstance(member, Section):
                self.section(member, value)
            elif member is not None:
                self._value(member, value)
            elif section.shared:
                self._likeness(section, node, key, name)
            else:
                self._problem(key, _below(section, name), f"unknown key; {_hint(name, section.members)}")

    def _value(self, key: Key, node: yaml.Node) -> None:
        try:
            self._document.values[key.place] = key.judge(self._loader.construct_document(node))
        except LedgerError as error:
            self._problem(node, key.place, error.message)
        except _UNREADABLE:
            self._problem(node, key.place, f"must be {key.takes}, and is no plain value")

    def _doubled(self, section: Section, node: yaml.MappingNode) -> None:
        """A key that stands twice: YAML's readers disagree about which one holds. The engine's own are let be."""
        seen: set[str] = set()
        for key, _ in node.value:
            name = _name(key)
            if name in seen and (name in section.members or not section.shared):
                self._problem(key, _below(section, name), "stands twice; keep one")
            seen.add(name)

    def _likeness(self, section: Section, node: yaml.MappingNode, key: yaml.Node, name: str) -> None:
        """Point out a key that is the engine's by the rules, and by its looks a slip in one of ours that is missing."""
        missing = set(section.members) - set(_last(node))
        for near in difflib.get_close_matches(name, missing, 1, _ALIKE):
            text = f"is taken for one of the engine's own; was {near} meant?"
            self._document.notes.append(Problem(_line(key), _below(section, name), text))

    def _problem(self, node: yaml.Node, place: str, text: str) -> None:
        self._document.problems.append(Problem(_line(node), place, text))


def _last(node: yaml.MappingNode) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """The pairs by name. Of two the last holds, as PyYAML has it; after flattening, a key's own before a merged one."""
    return {_name(key): (key, value) for key, value in node.value}


def _name(key: yaml.Node) -> str:
    return key.value if isinstance(key, yaml.ScalarNode) else "?"


def _below(section: Section, name: str) -> str:
    return f"{section.place}.{name:.60}".removeprefix(".")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _hint(name: str, known: Iterable[str]) -> str:
    """Name the nearest key that exists, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
