"""The page about the contract says what the proto files and the code say, and its wire examples can be compared."""

import json
from collections import Counter
from typing import Any

import pytest

from tools.contract import load
from tools.contract.examples import ELISION, agrees, examples, last_order, rewritten, set_up, shortened
from tools.contract.places import STATES
from tools.contract.reference import PAGE, Contract, named, page_with_tables

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_pages_tables_are_the_contracts() -> None:
    """Every number, name, type and rule stands as the proto files have it, and every status as the sidecar gives it."""
    assert page_with_tables(TEXT) == TEXT, "run `python -m tools.contract.reference`"


def test_the_page_names_the_whole_contract() -> None:
    """Each RPC, message and enum has its place, once."""
    contract = Contract()
    expected = [*contract.methods, *contract.messages, *contract.enums, "statuses"]
    assert len(contract.methods) == 6
    assert Counter(named(TEXT)) == Counter(expected)


def test_everything_in_the_contract_has_its_rule() -> None:
    """No field and no value but the zero of an enum that has no other meaning is without a comment."""
    contract = Contract()
    silent = [name for name, comment in contract.comments.items() if not comment and not name.endswith("_UNSPECIFIED")]
    assert [name for name in silent if name[0].islower() or "." in name or name.isupper()] == []


def test_every_rpc_and_every_state_has_its_wire_example() -> None:
    """A whole conversation is shown, and what a sidecar in trouble says."""
    shown = examples(TEXT)
    called = {word for example in shown for word in example.command.split() if "/" in word and word[0] == "R"}
    assert called == {name.replace(".", "/") for name in Contract().methods}
    assert {example.state for example in shown} == set(STATES)
    assert all(example.printed for example in shown if example.command.startswith("call "))
    assert "grpcurl" in set_up(TEXT)
    assert load.command(TEXT).startswith("ghz --format json ")


def test_a_page_that_is_written_anew_from_what_it_shows_is_itself() -> None:
    """Nothing but what the examples print is touched."""
    assert rewritten(TEXT, lambda example: f"{example.printed}\n" if example.printed else "") == TEXT


def _json(value: Any) -> str:
    return json.dumps(value)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ({"ordinal": "1"}, {"ordinal": "1"}),
        ({"entryId": "a"}, {"entryId": "b"}),
        ({"message": "one"}, {"message": "another"}),
        ({"text": "a long text"}, {"text": f"a long{ELISION}"}),
        ({"results": [{"verdict": "X"}]}, {"results": [{"verdict": "X"}]}),
    ],
)
def test_what_is_minted_or_shortened_agrees(printed: Any, shown: Any) -> None:
    """Ids and words for a person differ each time, and a text may be shown in part."""
    assert agrees(_json(printed), _json(shown))


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ({"ordinal": "2"}, {"ordinal": "1"}),
        ({"ordinal": "1", "more": 1}, {"ordinal": "1"}),
        ({}, {"ordinal": "1"}),
        ({"entryId": ""}, {"entryId": "b"}),
        ({"text": "a longer text"}, {"text": f"a long text{ELISION}"}),
        ({"results": []}, {"results": [{"verdict": "X"}]}),
    ],
)
def test_what_differs_does_not_agree(printed: Any, shown: Any) -> None:
    """A value, a member or an element that the page does not show is found."""
    assert not agrees(_json(printed), _json(shown))


def test_an_example_that_prints_nothing_agrees_with_nothing_alone() -> None:
    """A command that was to answer and did not is found."""
    assert agrees("", "\n")
    assert not agrees("", _json({"ordinal": "1"}))


def test_long_texts_are_shortened_and_orders_are_found() -> None:
    """What a page shows of a long text is its beginning; the next command gets the last order's id."""
    assert json.loads(shortened(_json({"a": ["x" * 5000]})))["a"][0].endswith(f"x{ELISION}")
    assert last_order('{"orderId": "o-1"} {"orderId": "o-2"}') == "o-2"
    assert last_order("{}") == ""
