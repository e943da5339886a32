"""`identify` is total: it survives other people's rules, sources and payloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from turnledger.identity import (
    MAX_KEY_BYTES,
    SOURCES,
    Conversation,
    Identity,
    NoConversation,
    Payload,
    Source,
    batch_identity,
    identify,
)

PAYLOAD = {"room": "r1", "note": "a secret"}


def _answer(conversation: Conversation) -> Source:
    return Source(lambda _payload, _event: conversation)


def _broken(_payload: Payload, _event: str | None) -> Conversation:
    raise ZeroDivisionError("a secret")


def _declining(_payload: Payload, _event: str | None) -> Conversation:
    raise NoConversation("no room", trigger="t1")


def _with_source(source: Source, payload: Any = PAYLOAD, event: Any = None) -> Identity:
    return identify("desk", payload, event, sources={"desk": source})


class Hostile(Mapping[str, object]):
    """A mapping of which nothing can be had."""

    def __getitem__(self, key: str) -> object:
        raise RuntimeError

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError


def test_a_rule_s_answer_gets_its_source_as_prefix() -> None:
    """Keys and trigger ids of two sources can never meet."""
    found = _with_source(_answer(Conversation("r1", "t1", "r1:p")))
    assert found == Identity("desk:r1", "desk:r1:p", "desk:t1")
    assert _with_source(_answer(Conversation("r1", "t1"))).partition_key == "desk:r1"


def test_a_broken_rule_costs_the_conversation_and_nothing_else() -> None:
    """An exception in a rule becomes a reason that names its type and repeats no content."""
    found = _with_source(Source(_broken))
    assert not found.has_conversation
    assert "ZeroDivisionError" in found.reason
    assert "secret" not in found.reason
    assert found != _with_source(Source(_broken), {"room": "r2"})


def test_a_broken_content_falls_back_to_the_whole_payload() -> None:
    """Two triggers stay two when a source cannot say what makes them so."""

    def no_content(_payload: Payload) -> object:
        raise ZeroDivisionError

    source = Source(_declining, no_content)
    one, other = _with_source(source), _with_source(source, {"room": "r2"})
    assert one.reason == "no room"
    assert one.conversation_key != other.conversation_key


def test_a_rule_that_declines_can_still_name_the_trigger() -> None:
    """What happened may be known where the conversation is not."""
    found = _with_source(Source(_declining))
    assert (found.has_conversation, found.trigger_id, found.reason) == (False, "desk:t1", "no room")


@pytest.mark.parametrize(
    ("local", "partition", "accepted"),
    [
        ("r" * (MAX_KEY_BYTES - 5), "", True),
        ("r" * (MAX_KEY_BYTES - 4), "", False),
        ("é" * 253, "", True),
        ("é" * 254, "", False),
        ("r1", "p" * MAX_KEY_BYTES, False),
        ("", "", False),
        ("\ud800", "", False),
    ],
)
def test_a_key_the_ledger_would_refuse_is_no_key(local: str, partition: str, accepted: bool) -> None:
    """Keys are 1 to 512 bytes of UTF-8; nothing is cut to make them fit."""
    found = _with_source(_answer(Conversation(local, "t1", partition)))
    assert found.has_conversation == accepted
    assert found.conversation_key.startswith("desk:" if accepted else "event:")
    assert bool(found.reason) != accepted


@pytest.mark.parametrize("trigger", ["", "t" * MAX_KEY_BYTES, "\ud800"])
def test_a_trigger_id_that_cannot_be_stands_for_the_content(trigger: str) -> None:
    """A trigger always has an id, and equal contents have equal ones."""
    source = _answer(Conversation("r1", trigger))
    found = _with_source(source)
    assert found.has_conversation
    assert found.trigger_id == _with_source(source, dict(PAYLOAD)).trigger_id
    assert found.trigger_id != _with_source(source, {"room": "r2"}).trigger_id


@pytest.mark.parametrize("source", [None, 7, "", "GitHub", "github ", ["github"], b"github", "\ud800"])
def test_an_unknown_source_has_no_conversation(source: Any) -> None:
    """A source is known by its exact name."""
    payload = {"issue": {"number": 42}, "repository": {"full_name": "acme/api"}}
    assert identify("github", payload).has_conversation
    assert not identify(source, payload).has_conversation


@pytest.mark.parametrize("event", [7, True, b"issues", ["issues"], {}])
def test_an_event_that_is_no_text_has_no_conversation(event: Any) -> None:
    """An event's name that cannot be read is not the same as none; an empty one is."""
    payload = {"issue": {"number": 42}, "repository": {"full_name": "acme/api"}}
    assert not identify("github", payload, event).has_conversation
    assert identify("github", payload, "").has_conversation


@pytest.mark.parametrize(
    "payload", [None, 7, "{}", b"{}", [], [{}], float("nan"), object()], ids=lambda value: type(value).__name__
)
def test_a_payload_that_is_no_object_has_no_conversation(payload: Any) -> None:
    """Bytes, text and lists are not taken apart."""
    for source in SOURCES:
        assert identify(source, payload).reason == "the payload is not an object"


@pytest.mark.parametrize("source", SOURCES)
def test_a_mapping_that_raises_has_an_identity(source: str) -> None:
    """Even a mapping that cannot be read, whole or in part, raises nothing."""
    for payload in (
        Hostile(),
        {"issue": Hostile()},
        {"type": "event_callback", "event": Hostile()},
    ):
        assert not identify(source, payload).has_conversation


@pytest.mark.parametrize("source", SOURCES)
def test_depth_and_cycles_have_an_identity(source: str) -> None:
    """A payload nested beyond any recursion limit, or into itself, is told apart like any other."""
    deep: dict[str, Any] = {}
    for _ in range(3_000):
        deep = {"in": [deep]}
    cycle: dict[str, Any] = {"type": "event_callback"}
    cycle["event"] = cycle["issue"] = cycle["self"] = cycle
    assert identify(source, deep) == identify(source, deep)
    assert identify(source, deep).conversation_key != identify(source, cycle).conversation_key


def test_a_batch_has_the_identity_of_its_first_conversation() -> None:
    """Members without a conversation do not hide the one that has one; order decides."""
    none = Identity("event:1", "event:1", "event:1", "none")
    first = Identity("a:1", "a:1", "a:t1")
    second = Identity("b:1", "b:1", "b:t1")
    assert batch_identity([none, first, second]) == first
    assert batch_identity(iter([second, none, first])) == second
    assert batch_identity([none]) == none
    assert not batch_identity([]).has_conversation
    assert batch_identity([]).reason
