"""The settings that hold, and where each comes from: command option before variable before file before default."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from sidecar.config.document import Document, Problem, parse
from sidecar.config.file import Reading, read_file
from sidecar.config.keys import KEYS, ROOT, Key
from sidecar.config.listen import parse_health, parse_listen
from sidecar.config.settings import Settings
from sidecar.config.values import invalid
from sidecar.config.variables import CONFIG_VARIABLE, ours, unread
from sidecar.domain.errors import LedgerError

#: Problems told to each call; the log and `turnledger config` have all. A status must fit the wire's 8 KiB of trailers.
_TOLD: Final = 5


class Origin(StrEnum):
    """What kind of place a value comes from."""

    DEFAULT = "default"
    FILE = "file"
    VARIABLE = "variable"
    OPTION = "option"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value comes from: `name` is the file's path, the variable's name or the option as it is typed."""

    origin: Origin
    name: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.origin, self.name)))


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the process was started with. Kept, so that the file can be judged again beside them."""

    path: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Effective:
    """The settings that hold, by key the `sources`, and everything that is wrong, or only odd (`notes`).

    Where something is wrong the settings are the best there are: what is right in the file stands, above all the
    addresses at which an engine and kubelet look for the sidecar to be told. Settings alone, as a program gives them,
    come from no file and never change.
    """

    settings: Settings
    sources: Mapping[str, Source] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    inputs: Inputs = field(default_factory=Inputs)
    reading: Reading = field(default_factory=Reading, repr=False)

    @property
    def refusal(self) -> LedgerError | None:
        """What each call is told, CONFIG_INVALID, or None where all is right."""
        if not self.problems:
            return None
        more = len(self.problems) - _TOLD
        rest = [f"and {more} more, see `turnledger config`"] if more > 0 else []
        return invalid("; ".join((*self.problems[:_TOLD], *rest)))


def effective(path: Path | None, options: Mapping[str, str | None], environ: Mapping[str, str]) -> Effective:
    """Read the file and judge it all. Raises nothing: what is wrong is in the answer.

    `options` are the command's by name without dashes (`listen`, `health`, `store`), None for one that is not given.
    The file is the one at `path`, else the one that `TURNLEDGER_CONFIG` names, else none: then the defaults hold.
    """
    variables = ours(environ)
    named = variables.pop(CONFIG_VARIABLE, None)
    chosen = path or (Path(named) if named else None)
    given = {name: text for name, text in options.items() if text is not None}
    inputs = Inputs(chosen, given, variables, tuple(unread(environ)))
    return judge(inputs, Reading() if chosen is None else read_file(chosen))


def judge(inputs: Inputs, reading: Reading) -> Effective:
    """The settings that hold with this text in the file. Touches nothing outside."""
    layers = _Layers(inputs)
    layers.file(reading)
    layers.texts(inputs.variables, Origin.VARIABLE)
    layers.texts({f"--{name}": text for name, text in inputs.options.items()}, Origin.OPTION)
    settings: Settings = ROOT.settings(layers.values)
    layers.together(settings)
    sources = {key.place: layers.sources.get(key.place, Source(Origin.DEFAULT)) for key in KEYS}
    problems, notes = tuple(layers.problems), (*layers.notes, *inputs.notes)
    return Effective(settings, sources, problems, notes, inputs, reading)


class _Layers:
    """The values so far, each layer laid over the one before."""

    def __init__(self, inputs: Inputs) -> None:
        self._path = str(inputs.path)
        self.values: dict[str, Any] = {}
        self.sources: dict[str, Source] = {}
        self.problems: list[str] = []
        self.notes: list[str] = []

    def file(self, reading: Reading) -> None:
        if reading.trouble:
            self.problems.append(f"{self._path}: {reading.trouble}")
            return
        document: Document = parse(reading.text)
        for place, value in document.values.items():
            self._put(place, value, Source(Origin.FILE, self._path))
        self.problems += map(self._told, document.problems)
        self.notes += map(self._told, document.notes)

    def texts(self, texts: Mapping[str, str], origin: Origin) -> None:
        """The variables or the options: text each, by the name that a person typed."""
        for key, name in _named(origin):
            if name not in texts:
                continue
            try:
                self._put(key.place, key.judge(texts[name], from_text=True), Source(origin, name))
            except LedgerError as error:
                self.problems.append(f"{name}: {key.place}: {error.message}")

    def together(self, settings: Settings) -> None:
        """What each key may be, and both may not: two servers on one port."""
        listen, health = parse_listen(settings.sidecar.listen), parse_health(settings.sidecar.health)
        if listen.port and listen.port == health.port:
            source = self.sources.get("sidecar.health", Source(Origin.DEFAULT))
            text = f"port {health.port} is that of sidecar.listen too; give each a port of its own"
            self.problems.append(f"{source}: sidecar.health: {text}")

    def _put(self, place: str, value: Any, source: Source) -> None:
        self.values[place] = value
        self.sources[place] = source

    def _told(self, problem: Problem) -> str:
        line = f"{self._path}, line {problem.line}" if problem.line else self._path
        return ": ".join(filter(None, (line, problem.place, problem.text)))


def _named(origin: Origin) -> Iterator[tuple[Key, str]]:
    """The keys that such a place can set, by the name they have there."""
    for key in KEYS:
        if origin is Origin.VARIABLE and key.variable:
            yield key, key.variable
        if origin is Origin.OPTION and key.option:
            yield key, f"--{key.option}"
