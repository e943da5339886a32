"""Every key of the settings: its place in the file, its variable and option, its default, and what it may be."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from sidecar.config.listen import HEALTH_FORMS, LISTEN_FORMS, parse_health, parse_listen
from sidecar.config.settings import Settings
from sidecar.config.values import GROUP_FORMS, STORE_FORMS, converted, rule, socket_group, store_path

#: The keys that are taken while the process runs. They have no variable: it would pin what the file is to change.
_LIVE: Final = frozenset(
    {"turn_engine.conversation_session.enabled", "turn_engine.conversation_session.max_entries"},
)

_VARIABLES: Final = {
    "turn_engine.conversation_session.retention_days": "TURNLEDGER_RETENTION_DAYS",
    "sidecar.listen": "TURNLEDGER_LISTEN",
    "sidecar.socket_group": "TURNLEDGER_SOCKET_GROUP",
    "sidecar.health": "TURNLEDGER_HEALTH",
    "sidecar.store": "TURNLEDGER_STORE",
    "sidecar.limits.concurrent_calls": "TURNLEDGER_LIMITS_CONCURRENT_CALLS",
    "sidecar.sweep.interval_s": "TURNLEDGER_SWEEP_INTERVAL_S",
    "sidecar.telemetry.log_level": "TURNLEDGER_TELEMETRY_LOG_LEVEL",
    "sidecar.telemetry.log_format": "TURNLEDGER_TELEMETRY_LOG_FORMAT",
}

#: The keys that a command's option sets, by the option's name without its dashes.
_OPTIONS: Final = {"sidecar.listen": "listen", "sidecar.health": "health", "sidecar.store": "store"}


@dataclass(frozen=True, slots=True)
class _Form:
    """What a type alone does not say: which texts are taken, in words, and the function that judges and tidies one."""

    words: str
    judge: Callable[[Any], Any]


_FORMS: Final = {
    "sidecar.listen": _Form(LISTEN_FORMS, lambda text: (parse_listen(text), text)[1]),
    "sidecar.health": _Form(HEALTH_FORMS, lambda text: (parse_health(text), text)[1]),
    "sidecar.store": _Form(STORE_FORMS, store_path),
    "sidecar.socket_group": _Form(GROUP_FORMS, socket_group),
}


@dataclass(frozen=True, slots=True)
class Key:
    """One setting. `place` is its path in the file with dots; `live`, whether a change is taken without a restart."""

    place: str
    type: Any
    default: Any

    @property
    def name(self) -> str:
        return self.place.rpartition(".")[2]

    @property
    def live(self) -> bool:
        return self.place in _LIVE

    @property
    def variable(self) -> str | None:
        return _VARIABLES.get(self.place)

    @property
    def option(self) -> str | None:
        """The option's name as a command takes it, without dashes."""
        return _OPTIONS.get(self.place)

    @property
    def takes(self) -> str:
        """What may stand there, in words."""
        form = _FORMS.get(self.place)
        return rule(self.type) if form is None else form.words

    def judge(self, raw: object, *, from_text: bool = False) -> Any:
        """The value that the key gets from what was written. Raises `LedgerError` CONFIG_INVALID with what is wrong."""
        value = converted(raw, self.type, from_text=from_text)
        form = _FORMS.get(self.place)
        return value if form is None else form.judge(value)

    def of(self, settings: Settings) -> Any:
        """Its value in these settings."""
        value: Any = settings
        for name in self.place.split("."):
            value = getattr(value, name)
        return value


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the file. In one that is `shared` with the engine, keys that are not ours are the engine's."""

    place: str
    struct: Any
    shared: bool
    members: dict[str, "Key | Section"]

    def keys(self) -> Iterator[Key]:
        """All keys in it, in the order of the file."""
        for member in self.members.values():
            if isinstance(member, Key):
                yield member
            else:
                yield from member.keys()

    def settings(self, values: Mapping[str, Any]) -> Any:
        """The section's struct of these values, by place; the defaults where there is none."""
        return self.struct(
            **{
                name: values.get(member.place, member.default) if isinstance(member, Key) else member.settings(values)
                for name, member in self.members.items()
            }
        )


def _section(place: str, struct: Any) -> Section:
    members: dict[str, Key | Section] = {}
    for field in msgspec.structs.fields(struct):
        below = f"{place}.{field.name}".removeprefix(".")
        is_section = isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
        members[field.name] = _section(below, field.type) if is_section else Key(below, field.type, field.default)
    return Section(place, struct, not struct.__struct_config__.forbid_unknown_fields, members)


#: The whole file, as `settings` has it.
ROOT: Final = _section("", Settings)

KEYS: Final = tuple(ROOT.keys())
