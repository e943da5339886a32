"""Properties that hold for payloads nobody has thought of."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turnledger.identity import MAX_KEY_BYTES, SOURCES, Identity, identify

# A busy machine is no failure.
unhurried = settings(deadline=None)

VECTORS = Path(__file__).resolve().parents[1] / "conformance" / "identity.json"
CASES = json.loads(VECTORS.read_text(encoding="utf-8"))["cases"]
CONVERSATIONS = [case for case in CASES if not case["conversation_key"].startswith("event:")]

# The fields that make a key: a payload in which one of them changed is about something else.
IDENTIFYING = {
    "github": {"full_name", "number"},
    "gitlab": {"path_with_namespace", "iid", "object_kind", "noteable_type"},
    "jira": {"key", "toString"},
    "slack": {"channel", "channel_id", "ts", "thread_ts"},
}

JUNK: list[Any] = [
    None, True, False, 0, -1, 7.5, float("nan"), float("inf"), 10**5000, "", "x", "42", "\x00",
    "\ud800", "C9\n", [], [{}], {}, {"id": 1}, {"type": "message"}, b"bytes", object(), {1: {2}},
]  # fmt: skip

# No source names a thread with one of these.
NO_NAMES: list[Any] = [[], {}, True, 7.5, float("nan"), 10**5000, "", "\x00", "\ud800", " C9"]

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=12,
)
sources = st.sampled_from([*SOURCES, "pager", ""])


def _run(case: dict[str, Any]) -> Identity:
    return identify(case["source"], case["payload"], case.get("event"))


def _assert_sound(found: Identity) -> None:
    for key in (found.conversation_key, found.partition_key, found.trigger_id):
        assert 1 <= len(key.encode("utf-8")) <= MAX_KEY_BYTES
    assert found.has_conversation == (not found.reason)
    assert "failed" not in found.reason  # the safety net is for other people's rules


def _paths(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keyed = dict(enumerate(value)) if isinstance(value, list) else value
    for key, item in keyed.items() if isinstance(keyed, dict) else ():
        yield (*path, key)
        yield from _paths(item, (*path, key))


def _changed(payload: Any, path: tuple[Any, ...], junk: object, *, remove: bool) -> Any:
    result = copy.deepcopy(payload)
    parent = result
    for key in path[:-1]:
        parent = parent[key]
    if remove:
        del parent[path[-1]]
    else:
        parent[path[-1]] = junk
    return result


@unhurried
@given(sources | anything, anything, st.none() | st.sampled_from(["issues", "push"]) | anything)
def test_anything_at_all_has_an_identity(source: Any, payload: Any, event: Any) -> None:
    """No input of any type raises or makes a key that the ledger would refuse."""
    _assert_sound(identify(source, payload, event))


@unhurried
@given(st.sampled_from(CASES), st.data())
def test_payloads_with_arbitrary_parts_have_an_identity(case: Any, data: st.DataObject) -> None:
    """A real payload with arbitrary JSON in one place never raises."""
    path = data.draw(st.sampled_from([(), *_paths(case["payload"])]))
    junk = data.draw(anything)
    payload = _changed(case["payload"], path, junk, remove=False) if path else junk
    _assert_sound(_run({**case, "payload": payload}))


@pytest.mark.parametrize("case", CONVERSATIONS, ids=lambda case: case["name"])
def test_a_damaged_payload_is_never_another_conversation(case: dict[str, Any]) -> None:
    """A lost or ruined field gives the same conversation or none, unless it names the thread."""
    for path in _paths(case["payload"]):
        if path[-1] in IDENTIFYING[case["source"]] or "changelog" in path:
            continue
        for remove, junk in [(True, None), *((False, junk) for junk in JUNK)]:
            found = _run({**case, "payload": _changed(case["payload"], path, junk, remove=remove)})
            _assert_sound(found)
            if found.has_conversation:
                assert found.conversation_key == case["conversation_key"], (path, junk)


@pytest.mark.parametrize("case", CONVERSATIONS, ids=lambda case: case["name"])
def test_a_field_of_another_type_names_no_conversation(case: dict[str, Any]) -> None:
    """What names the thread is taken as it stands or not at all: never converted, never cut."""
    for path in _paths(case["payload"]):
        if path[-1] in IDENTIFYING[case["source"]]:
            for junk in NO_NAMES:
                payload = _changed(case["payload"], path, junk, remove=False)
                found = _run({**case, "payload": payload})
                assert not found.has_conversation or (found.conversation_key == case["conversation_key"]), (path, junk)


@unhurried
@given(st.sampled_from(CASES), st.data())
def test_a_redelivery_is_the_same_trigger(case: dict[str, Any], data: st.DataObject) -> None:
    """Sent again, keys in another order, a payload has the very same identity."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shuffled(value[key]) for key in data.draw(st.permutations(list(value)))}
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    assert _run({**case, "payload": shuffled(case["payload"])}) == _run(case)


@unhurried
@given(st.sampled_from(list(SOURCES)), anything, anything)
def test_two_contents_have_two_event_keys(source: str, one: Any, other: Any) -> None:
    """Triggers without a conversation are told apart by what they hold."""
    first, second = (identify(source, {"note": value}) for value in (one, other))
    same = repr(one) == repr(other)
    if same:
        assert first == second
    elif json.dumps(one, default=repr) != json.dumps(other, default=repr):
        assert first.conversation_key != second.conversation_key
