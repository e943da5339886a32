"""Which rewrites are ordered of a turn's calls, and the ids that bring them back."""

import hashlib
import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sidecar.domain.calls import CallKind, SuppliedCall, keep, over_budget
from sidecar.domain.entry import Entry, EntryRef, Recorded, condense, entry_text
from sidecar.domain.instructions import OrderKind
from sidecar.domain.orders import Order, OrderId, note_order, parse_order_id, payload_orders
from tests.domain.making import PLAIN
from tests.domain.strategies import entries, supplied_calls

_REF: Final = EntryRef(7, "entry-7", 3)
_LONG: Final = "A long letter to a customer. " * 10
_KIB_64: Final = 64 * 1024


def _orders(*supplied: SuppliedCall, first: Entry | None = None) -> list[Order]:
    """The orders for these calls, in an entry of theirs or in the one that was first."""
    entry = first or replace(PLAIN, calls=tuple(map(keep, supplied)))
    return payload_orders(Recorded(_REF, entry), supplied)


def _call(value: Any = _LONG, kind: CallKind = CallKind.WRITE, error: str = "", *sensitive: str) -> SuppliedCall:
    return SuppliedCall("send", json.dumps({"body": value}), kind, bool(error), error, frozenset(sensitive))


def _texts(orders: list[Order]) -> list[str]:
    return [order.text for order in orders]


def test_arguments_and_errors() -> None:
    """A value or an error over 200 characters is ordered, with its own kind, digest and limit."""
    error = "E" * 201
    found = _orders(_call(error=error))
    assert [(each.order_id.kind, each.text, each.limit) for each in found] == [
        (OrderKind.ARGUMENT, _LONG, 200),
        (OrderKind.ERROR, error, 200),
    ]
    for order in found:
        assert order.order_id.ref == _REF
        assert order.order_id.digest == hashlib.sha256(order.text.encode()).hexdigest()


@pytest.mark.parametrize(("characters", "ordered"), [(199, 0), (200, 0), (201, 1)])
@pytest.mark.parametrize("sign", ["x", "😀"])
def test_the_budget_is_of_characters(sign: str, characters: int, ordered: int) -> None:
    """What is within its budget is shown whole and needs no words."""
    assert len(_orders(_call(sign * characters))) == ordered


@pytest.mark.parametrize("value", [list(range(100)), {"a": ["b" * 300]}])
def test_a_value_that_is_no_text(value: Any) -> None:
    """What is no string is ordered by its compact JSON."""
    assert _texts(_orders(_call(value))) == [json.dumps(value, separators=(",", ":"))]


@pytest.mark.parametrize("arguments", ["{" + "x" * 300, json.dumps("y" * 300), json.dumps(["y"] * 300)])
def test_arguments_as_one_value(arguments: str) -> None:
    """Arguments that are no object are ordered as the one value that they are."""
    assert len(_orders(SuppliedCall("x", arguments, CallKind.WRITE))) == 1


def test_identical_texts_once() -> None:
    """One order for a text that stands in several places, and its rewrite replaces it in all of them."""
    call = _call(error=_LONG)
    [order] = _orders(call, call, _call())
    entry = replace(PLAIN, calls=(keep(call), keep(call)))
    changed = condense(entry, order.order_id.digest, "a letter")
    assert changed is not None
    assert entry_text(changed, "x").count("(condensed) ") == 4
    assert not [payload for each in changed.calls for payload in each.named()]


def test_sensitive_and_withheld_never() -> None:
    """No order holds a sensitive value, an error that repeats one, or arguments nobody can take apart."""
    secret = "hunter2-" * 40
    assert _orders(_call(secret, CallKind.WRITE, f"failed for {secret}", "body")) == []
    assert _orders(SuppliedCall("x", "{" + secret, CallKind.WRITE, True, secret, frozenset({"body"}))) == []
    assert _texts(_orders(_call(_LONG, CallKind.WRITE, "", "other"))) == [_LONG]


def test_what_is_never_shown() -> None:
    """Discovery calls and reads past the twelfth need no words; what they share with a shown call is ordered once."""
    reads = [_call(f"{place} {_LONG}", CallKind.READ) for place in range(14)]
    assert _orders(_call(kind=CallKind.META, error="E" * 300)) == []
    assert _texts(_orders(*reads)) == [f"{place} {_LONG}" for place in range(12)]
    assert _texts(_orders(*reads, _call(f"13 {_LONG}")))[12:] == [f"13 {_LONG}"]


@pytest.mark.parametrize("unit", ["x", "é"])
def test_the_size_of_an_order(unit: str) -> None:
    """A text of 64 KiB is ordered, a byte more is not, and is named all the same."""
    at = unit * (_KIB_64 // len(unit.encode()))
    assert len(_orders(_call(at))) == 1
    assert _orders(_call(at + "x")) == []
    assert [payload.size for payload in keep(_call(at + "x")).named()] == [_KIB_64 + 1]


def test_a_duplicates_orders() -> None:
    """For an entry that was first, only what it names is ordered, and only what still stands by name."""
    first = replace(PLAIN, calls=(keep(_call("a" * 300)), keep(_call("b" * 300))))
    again = (_call("a" * 300), _call("c" * 300), _call("b" * 300))
    found = _orders(*again, first=first)
    assert _texts(found) == ["a" * 300, "b" * 300]
    fitted = condense(first, found[0].order_id.digest, "letters")
    assert fitted is not None
    assert _texts(_orders(*again, first=fitted)) == ["b" * 300]


@given(st.lists(supplied_calls(), max_size=5).map(tuple))
def test_no_order_for_what_is_shown(calls: tuple[SuppliedCall, ...]) -> None:
    """Every order is for a payload that stands by name in the entry, each once, and its id is a plain one."""
    found = _orders(*calls)
    named = {payload.sha256 for call in calls for payload in keep(call).named()}
    digests = [order.order_id.digest for order in found]
    assert len(set(digests)) == len(digests)
    assert set(digests) <= named
    assert all(parse_order_id(str(order.order_id)) == order.order_id for order in found)


@given(entries)
def test_a_notes_order(entry: Entry) -> None:
    """A note's text is its entry as rendered, and its id holds the entry's version and no digest."""
    order = note_order(Recorded(_REF, entry))
    assert order.text.startswith(f"### {entry.completed_at} (turn ")
    assert "You called:" in order.text
    assert (order.limit, order.order_id.kind, order.order_id.digest) == (400, OrderKind.NOTE, "")
    assert order.order_id.ref == _REF


def test_a_note_of_a_giant() -> None:
    """Where the entry passes 64 KiB its largest fields stand by size and digest, and no others."""
    giant = replace(PLAIN, trigger="t" * _KIB_64, intent="short", final_text="r" * 200_000)
    text = note_order(Recorded(_REF, giant)).text
    assert len(text.encode()) <= _KIB_64
    assert text.count(" not shown, digest ") == 2
    assert "| short" in text
    almost = replace(giant, trigger="t" * (_KIB_64 - 1_000))
    assert note_order(Recorded(_REF, almost)).text.count(" not shown, digest ") == 1


_ENTRY_IDS: Final = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)


@given(
    st.builds(EntryRef, st.integers(0, 10**18 - 1), _ENTRY_IDS, st.integers(0, 10**9 - 1)),
    st.sampled_from(OrderKind),
    st.binary(min_size=32, max_size=32).map(bytes.hex),
    st.integers(0, 10**9 - 1),
)
def test_ids_parse_back(ref: EntryRef, kind: OrderKind, digest: str, version: int) -> None:
    """An id is read back as exactly what it was made of."""
    order_id = OrderId(ref, kind, "" if kind is OrderKind.NOTE else digest, version)
    assert parse_order_id(str(order_id)) == order_id


_D: Final = "0a" * 32


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "7.entry-7.3.note.1",
        f"7.entry-7.3.note.1.{_D}",
        "7.entry-7.3.argument.1.",
        "7.entry-7.3.error.1.0a",
        f"7.entry-7.3.argument.1.{_D.upper()}",
        f"7.entry-7.3.argument.1.{_D}0",
        "7.entry-7.3.poem.1.",
        "7.entry-7.3.note.1.\n",
        " 7.entry-7.3.note.1.",
        "-7.entry-7.3.note.1.",
        "07.entry-7.3.note.1.",
        "7.entry-7.03.note.1.",
        "7.entry-7.3.note.01.",
        "٧.entry-7.3.note.1.",
        "7.entry-7.3.note.１.",
        "7.éntry.3.note.1.",
        "7.entry 7.3.note.1.",
        f"{10**18}.entry-7.3.note.1.",
        f"7.{'e' * 65}.3.note.1.",
        f"7.entry-7.{10**9}.note.1.",
        "7.entry-7.3.note.1." + "x" * 100_000,
        "9" * 100_000,
    ],
)
def test_no_other_ids(text: str) -> None:
    """What no sidecar issued is no id, however near it comes."""
    assert parse_order_id(text) is None


@given(st.text() | st.from_regex(r"\d{1,20}\.[\w-]{1,9}\.\d{1,3}\.(argument|error|note)\.\d\.[0-9a-f]{0,70}"))
def test_one_spelling(text: str) -> None:
    """Each order has one id: what is read as one is spelled as it would be issued."""
    found = parse_order_id(text)
    assert found is None or str(found) == text


def test_a_text_that_repeats_a_sensitive_value_has_no_order() -> None:
    """What repeats a sensitive value is named and never handed out, whichever argument it stands in."""
    arguments = json.dumps(
        {"password": "hunter2-hunter2", "body": "mail with hunter2-hunter2 " * 20, "other": "o" * 300}
    )
    call = SuppliedCall("x", arguments, CallKind.WRITE, sensitive=frozenset({"password"}))
    assert [text for _, text in over_budget(call)] == ["o" * 300]
    assert "hunter2" not in str(keep(call))
