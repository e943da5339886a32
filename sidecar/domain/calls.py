"""Tool calls: what is kept of one, and which of a turn's calls are shown."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from sidecar.domain.instructions import OrderKind
from sidecar.domain.jsontext import Json, NotPlainJson, compact, is_text, parse, spellings
from sidecar.domain.limits import JSON_CHARACTERS, READS_SHOWN
from sidecar.domain.payload import WITHHELD, Payload, PayloadState, budgeted, condensed, is_over_budget


class CallKind(StrEnum):
    """What a call could do. An unknown one counts as a write: a write taken for a read would be run twice."""

    WRITE = "write"
    READ = "read"
    META = "meta"


class ArgumentsForm(StrEnum):
    """How a call's arguments are kept."""

    MEMBERS = "members"  # a JSON object, value by value
    JSON = "json"  # JSON that is no object, as one value
    TEXT = "text"  # no JSON, or JSON with a repeated key, as one value


class SuppliedCall(Struct, frozen=True, gc=False):
    """A call as the engine sent it. `arguments` is the model's JSON text; `error` is empty unless the call failed;
    `sensitive` names top-level arguments whose values are not to be kept."""

    name: str
    arguments: str
    kind: CallKind
    failed: bool = False
    error: str = ""
    sensitive: frozenset[str] = frozenset()


class Argument(Struct, frozen=True, gc=False):
    """One argument as kept; the name is empty where the arguments are one value."""

    name: str
    value: Payload


class Call(Struct, frozen=True, gc=False):
    """A call as kept: every payload within its budget, named, rewritten, or withheld."""

    name: str
    kind: CallKind
    failed: bool
    form: ArgumentsForm
    arguments: tuple[Argument, ...]
    error: Payload

    def named(self) -> Iterator[Payload]:
        """The payloads that stand by size and digest alone."""
        for payload in (*(kept.value for kept in self.arguments), self.error):
            if payload.state is PayloadState.NAMED:
                yield payload


def keep(call: SuppliedCall) -> Call:
    """What is kept of a call: the last place where over-budget and sensitive text exists."""
    form, values, error = _judged(call)
    arguments = tuple(Argument(value.name, value.kept()) for value in values)
    return Call(call.name, call.kind, call.failed, form, arguments, error.kept())


def over_budget(call: SuppliedCall) -> Iterator[tuple[OrderKind, str]]:
    """The texts of a call that `keep` names, and that may be rewritten."""
    _, values, error = _judged(call)
    for kind, value in (*((OrderKind.ARGUMENT, value) for value in values), (OrderKind.ERROR, error)):
        if not value.withheld and not value.holds_secret and is_over_budget(value.original):
            yield kind, value.original


def rewritten(call: Call, sha256: str, rewrite: str) -> Call:
    """The call with the rewrite in place of each payload that is named by the digest."""

    def fitted(payload: Payload) -> Payload:
        is_meant = payload.state is PayloadState.NAMED and payload.sha256 == sha256
        return condensed(payload, rewrite) if is_meant else payload

    arguments = tuple(Argument(kept.name, fitted(kept.value)) for kept in call.arguments)
    return replace(call, arguments=arguments, error=fitted(call.error))


def shown(calls: Sequence[Call]) -> list[Call]:
    """The calls that have a line: every write, and the first reads."""
    reads = 0
    chosen = []
    for call in calls:
        if call.kind is CallKind.READ:
            reads += 1
        if call.kind is CallKind.WRITE or (call.kind is CallKind.READ and reads <= READS_SHOWN):
            chosen.append(call)
    return chosen


class _Value(Struct, frozen=True, gc=False):
    """One argument or error before its budget: as it would be shown, and as it came. A secret in it: no order."""

    name: str
    shown: str
    original: str
    withheld: bool = False
    holds_secret: bool = False

    def kept(self) -> Payload:
        return WITHHELD if self.withheld else budgeted(self.shown, self.original)


def _judged(call: SuppliedCall) -> tuple[ArgumentsForm, list[_Value], _Value]:
    """The arguments' form and values, and the error."""
    if len(call.arguments) > JSON_CHARACTERS:
        return _judged_whole(call, ArgumentsForm.TEXT, call.arguments, call.arguments)
    try:
        return _judged_json(call, parse(call.arguments))
    except NotPlainJson:
        return _judged_whole(call, ArgumentsForm.TEXT, call.arguments, call.arguments)


def _judged_json(call: SuppliedCall, value: Json) -> tuple[ArgumentsForm, list[_Value], _Value]:
    if isinstance(value, dict):
        secrets = _secrets(value, call.sensitive)
        # "login failed for hunter2" would keep what was to be withheld.
        error = _Value("", call.error, call.error, withheld=_holds_any(secrets, call.error))
        return ArgumentsForm.MEMBERS, _members(value, call.sensitive, secrets), error
    shown = compact(value)
    return _judged_whole(call, ArgumentsForm.JSON, shown, value if is_text(value) else shown)


def _judged_whole(
    call: SuppliedCall, form: ArgumentsForm, shown: str, original: str
) -> tuple[ArgumentsForm, list[_Value], _Value]:
    """Arguments as one value, whole or not at all, and so their error: nobody can say which part is sensitive."""
    withheld = bool(call.sensitive)
    error = _Value("", call.error, call.error, withheld and bool(call.error))
    return form, [_Value("", shown, original, withheld)], error


def _members(members: dict[str, Json], sensitive: frozenset[str], secrets: set[str]) -> list[_Value]:
    if not all(is_text(name) for name in members):
        raise NotPlainJson
    return [
        _Value(name, "", "", withheld=True) if name in sensitive else _member(name, members[name], secrets)
        for name in sorted(members)
    ]


def _member(name: str, value: Json, secrets: set[str]) -> _Value:
    shown = compact(value, level=2)
    original = value if is_text(value) else shown
    return _Value(name, shown, original, holds_secret=_holds_any(secrets, original))


def _secrets(arguments: dict[str, Json], sensitive: frozenset[str]) -> set[str]:
    return {secret for name in sensitive if name in arguments for secret in spellings(arguments[name])}


def _holds_any(secrets: set[str], text: str) -> bool:
    return bool(secrets) and any(secret in text for secret in secrets)
