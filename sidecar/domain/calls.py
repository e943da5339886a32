"""Tool calls: what is kept of one, and the lines that a turn's calls become.

A write is always shown. A reader must never take a write for a read, nor a failure for a success, whatever the texts
hold.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sidecar.domain.jsontext import Json, NotPlainJson, compact, is_text, parse
from sidecar.domain.limits import READS_SHOWN
from sidecar.domain.payload import WITHHELD, WITHHELD_NOTICE, Payload, PayloadState, budgeted, named_notice
from sidecar.domain.text import bare_or_quoted, json_string, word_or_quoted


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


@dataclass(frozen=True, slots=True)
class SuppliedCall:
    """A call as the engine sent it. `arguments` is the model's JSON text; `error` is empty unless the call failed;
    `sensitive` names top-level arguments whose values are not to be kept."""

    name: str
    arguments: str
    kind: CallKind
    failed: bool = False
    error: str = ""
    sensitive: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument as kept; the name is empty where the arguments are one value."""

    name: str
    value: Payload


@dataclass(frozen=True, slots=True)
class Call:
    """A call as kept: every payload within its budget, named, or withheld."""

    name: str
    kind: CallKind
    failed: bool
    form: ArgumentsForm
    arguments: tuple[Argument, ...]
    error: Payload


def keep(call: SuppliedCall) -> Call:
    """What is kept of a call: the last place where over-budget and sensitive text exists."""
    value: Json = None
    try:
        value = parse(call.arguments)
        form, arguments = _kept_json(value, call.sensitive)
    except NotPlainJson:
        form, arguments = ArgumentsForm.TEXT, _one_value(call.arguments, call.sensitive)
    return Call(call.name, call.kind, call.failed, form, arguments, _kept_error(call, value))


def lines(calls: Sequence[Call]) -> list[str]:
    """One line a call: every write, the first reads, then how many further reads there were. None: no call to show."""
    shown: list[str] = []
    reads = 0
    for call in calls:
        if call.kind is CallKind.READ:
            reads += 1
        if call.kind is CallKind.WRITE or (call.kind is CallKind.READ and reads <= READS_SHOWN):
            shown.append(line(call))
    if reads > READS_SHOWN:
        shown.append(f"- (+{reads - READS_SHOWN} further read call(s) omitted)")
    return shown


def line(call: Call) -> str:
    """The call on one line, such as `- name({"k":"v"}) → success (read)`."""
    mark = " (read)" if call.kind is CallKind.READ else ""
    return f"- {word_or_quoted(call.name)}({_shown_arguments(call)}) → {_shown_result(call)}{mark}"


def write_names(calls: Iterable[Call]) -> str:
    """The names of the writes in order of their first call, with how often each ran and failed; empty if none."""
    tally: dict[str, list[bool]] = {}
    for call in calls:
        if call.kind is CallKind.WRITE:
            tally.setdefault(word_or_quoted(call.name), []).append(call.failed)
    return ", ".join(f"{name}{_times(failures)}" for name, failures in tally.items())


def _times(failures: list[bool]) -> str:
    times = f" ×{len(failures)}" if len(failures) > 1 else ""
    failed = sum(failures)
    if not failed:
        return times
    return f"{times} (failed)" if failed == len(failures) else f"{times} ({failed} failed)"


def _kept_json(value: Json, sensitive: frozenset[str]) -> tuple[ArgumentsForm, tuple[Argument, ...]]:
    if isinstance(value, dict):
        return ArgumentsForm.MEMBERS, _kept_members(value, sensitive)
    return ArgumentsForm.JSON, _one_value(compact(value), sensitive)


def _one_value(text: str, sensitive: frozenset[str]) -> tuple[Argument, ...]:
    """One value whole or not at all: nobody can say which part of it a sensitive name would have named."""
    return (Argument("", WITHHELD if sensitive else budgeted(text)),)


def _kept_members(members: dict[str, Json], sensitive: frozenset[str]) -> tuple[Argument, ...]:
    if not all(is_text(name) for name in members):
        raise NotPlainJson
    return tuple(Argument(name, _kept_value(name, members[name], sensitive)) for name in sorted(members))


def _kept_value(name: str, value: Json, sensitive: frozenset[str]) -> Payload:
    if name in sensitive:
        return WITHHELD
    return budgeted(compact(value), value if is_text(value) else None)


def _kept_error(call: SuppliedCall, arguments: Json) -> Payload:
    """The error, unless it repeats a sensitive value: "login failed for hunter2" would keep what was to be withheld."""
    if isinstance(arguments, dict):
        secrets = (arguments[name] for name in call.sensitive if name in arguments)
        if any(secret in call.error for value in secrets for secret in _spellings(value)):
            return WITHHELD
    return budgeted(call.error)


def _spellings(value: Json) -> set[str]:
    return {text for text in (compact(value), value if is_text(value) else "") if text}


def _shown_arguments(call: Call) -> str:
    if call.form is ArgumentsForm.MEMBERS:
        members = (f"{json_string(kept.name)}:{_shown(kept.value, kept.value.text)}" for kept in call.arguments)
        return "{" + ",".join(members) + "}"
    [only] = call.arguments
    text = only.value.text
    return _shown(only.value, text if call.form is ArgumentsForm.JSON else bare_or_quoted(text))


def _shown_result(call: Call) -> str:
    if not call.failed:
        return "success"
    if call.error == Payload(PayloadState.WHOLE):
        return "error"
    return f"error: {_shown(call.error, bare_or_quoted(call.error.text))}"


def _shown(payload: Payload, whole: str) -> str:
    """A payload inside a line. Its notices stand outside any quotes, so that no text can pass for one."""
    if payload.state is PayloadState.WHOLE:
        return whole
    if payload.state is PayloadState.WITHHELD:
        return WITHHELD_NOTICE
    return named_notice(payload.size, payload.sha256)
