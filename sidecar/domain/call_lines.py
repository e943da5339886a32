"""The lines that a turn's calls become.

A reader must never take a write for a read, nor a failure for a success, whatever the texts hold.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from sidecar.domain.calls import ArgumentsForm, Call, CallKind, shown
from sidecar.domain.limits import READS_SHOWN, WRITE_NAMES_BYTES
from sidecar.domain.payload import CONDENSED_NOTICE, WITHHELD_NOTICE, Payload, PayloadState, named_notice
from sidecar.domain.text import bare_or_quoted, bare_or_quoted_between, json_string, size_of, word_or_quoted


def lines(calls: Sequence[Call]) -> list[str]:
    """One line for each call that is shown, then how many further reads there were. Empty: no call to show."""
    reads = sum(call.kind is CallKind.READ for call in calls)
    omitted = [f"- (+{reads - READS_SHOWN} further read call(s) omitted)"] if reads > READS_SHOWN else []
    return [line(call) for call in shown(calls)] + omitted


def write_names(calls: Iterable[Call]) -> str:
    """The names of the writes in order of their first call, with how often each ran and failed; empty if none.

    Past `WRITE_NAMES_BYTES` the others are counted: one turn of very many tools must not take all of the account.
    """
    tally: dict[str, list[bool]] = {}
    for call in calls:
        if call.kind is CallKind.WRITE:
            tally.setdefault(word_or_quoted(call.name), []).append(call.failed)
    names = [f"{name}{_times(failures)}" for name, failures in tally.items()]
    sizes = accumulate(size_of(name) for name in names)
    shown = names[: sum(size <= WRITE_NAMES_BYTES for size in sizes)]
    further = sum(len(failures) for failures in list(tally.values())[len(shown) :])
    return ", ".join([*shown, f"(+{further} further write call(s))"] if further else shown)


def _times(failures: list[bool]) -> str:
    times = f" ×{len(failures)}" if len(failures) > 1 else ""
    failed = sum(failures)
    if not failed:
        return times
    return f"{times} (failed)" if failed == len(failures) else f"{times} ({failed} failed)"


def line(call: Call) -> str:
    """The call on one line, such as `- name({"k":"v"}) → success (read)`."""
    mark = " (read)" if call.kind is CallKind.READ else ""
    return f"- {word_or_quoted(call.name)}({_arguments(call)}) → {_result(call)}{mark}"


def _arguments(call: Call) -> str:
    if call.form is ArgumentsForm.MEMBERS:
        return "{" + ",".join([f"{json_string(kept.name)}:{_value(kept.value)}" for kept in call.arguments]) + "}"
    [only] = call.arguments
    if call.form is ArgumentsForm.TEXT and only.value.state is PayloadState.WHOLE:
        return bare_or_quoted_between(only.value.text)
    return _value(only.value)


def _value(payload: Payload) -> str:
    """A value among others, in JSON: a rewrite that stood bare could go on as the next argument."""
    return payload.text if payload.state is PayloadState.WHOLE else _with_notice(payload, json_string(payload.text))


def _result(call: Call) -> str:
    if not call.failed:
        return "success"
    if call.error == Payload(PayloadState.WHOLE):
        return "error"
    return f"error: {_with_notice(call.error, bare_or_quoted(call.error.text))}"


def _with_notice(payload: Payload, text: str) -> str:
    """A payload inside a line. Its notices stand outside any quotes, so that no text can pass for one."""
    match payload.state:
        case PayloadState.WHOLE:
            return text
        case PayloadState.CONDENSED:
            return CONDENSED_NOTICE + text
        case PayloadState.WITHHELD:
            return WITHHELD_NOTICE
        case PayloadState.NAMED:
            return named_notice(payload.size, payload.sha256)
