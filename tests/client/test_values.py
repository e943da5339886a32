"""Text repair, withholding, the saved form, the two shells' likeness, and what importing costs."""

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import grpc
import pytest
import turnledger
from google.protobuf import any_pb2
from google.rpc import status_pb2
from hypothesis import given
from hypothesis import strategies as st
from turnledger import BlockingLedger, BlockingTurn, CallKind, Failure, InvalidSavedTurn, Ledger, Phase, Turn, Violation
from turnledger.answers import History, HistoryState
from turnledger.channel import OPTIONS
from turnledger.entry import ToolCall
from turnledger.rich_status import failure_of
from turnledger.saved import SavedTurn, dump, load
from turnledger.steps import TurnKeys
from turnledger.text import repaired
from turnledger.withhold import withheld

any_text = st.text(st.characters(codec=None, exclude_categories=()))
valid_text = st.text()


@given(valid_text)
def test_valid_text_is_never_touched(text: str) -> None:
    """Whatever is Unicode comes through as it is."""
    assert repaired(text) == (text, 0)


@given(any_text)
def test_repaired_text_is_valid_and_no_more_is_changed(text: str) -> None:
    """The result encodes, repair is idempotent, and each lone surrogate costs exactly itself."""
    mended, lone = repaired(text)
    mended.encode()
    assert repaired(mended) == (mended, 0)
    assert mended == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert lone == mended.count("\ufffd") - text.count("\ufffd")


def test_halves_that_stand_together_are_their_character() -> None:
    """A pair is no lone surrogate: nothing is lost and nothing reported. The escape in JSON text is text."""
    assert repaired("\ud83d\ude42") == ("🙂", 0)
    assert repaired("\ude42\ud83d") == ("\ufffd\ufffd", 2)
    assert repaired('{"a":"\\ud800"}') == ('{"a":"\\ud800"}', 0)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | valid_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(valid_text, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(valid_text, json_values, max_size=5), st.sets(valid_text, max_size=3), st.data())
def test_withholding_changes_the_sensitive_values_alone(
    members: dict[str, Any], more: set[str], data: st.DataObject
) -> None:
    """Every other member keeps its digits, its order and its spelling."""
    sensitive = tuple(more | set(data.draw(st.lists(st.sampled_from(sorted(members) or [""]), max_size=3))))
    indent = data.draw(st.sampled_from([None, 2]))
    text = json.dumps(members, indent=indent, ensure_ascii=data.draw(st.booleans()))
    hidden = {name: "(withheld)" if name in sensitive else value for name, value in members.items()}
    assert json.loads(withheld(text, sensitive)) == hidden
    assert list(json.loads(withheld(text, sensitive))) == list(members)


def test_withholding_keeps_digits_and_white_space() -> None:
    """What is not withheld is the same text, character for character."""
    text = '{ "id" : 12345678901234567890.10 , "key":"s" ,"n":{"key": 1e400} }'
    assert withheld(text, ("key",)) == '{ "id" : 12345678901234567890.10 , "key":"(withheld)" ,"n":{"key": 1e400} }'
    assert withheld(text, ()) == text
    assert withheld(text, ("id",)).startswith('{ "id" : "(withheld)" , "key":"s"')


@pytest.mark.parametrize(
    "text",
    ["", "secret", '["secret"]', '{"k": 1', '{"k": 1, "k": 2}', '{"a": NaN, "k": 1}', '{"k": 1} x', "[" * 100_000],
)
def test_what_is_no_object_is_withheld_as_a_whole(text: str) -> None:
    """Text whose members cannot be told apart is withheld altogether if the call names a sensitive one."""
    assert withheld(text, ("k",)) == "(withheld)"
    assert withheld(text, ()) == text


def frozen(text: str) -> History:
    """A history of this text, all of whose counts differ."""
    data = text.encode()
    state = HistoryState.PRESENT if text else HistoryState.EMPTY
    return History(state, text, sha256(data).hexdigest(), len(data), 1, 2, 3, 4, 5)


calls = st.builds(
    ToolCall,
    name=valid_text,
    arguments=valid_text,
    kind=st.sampled_from(CallKind),
    failed=st.booleans(),
    error=valid_text,
    sensitive=st.just(()),
)
failures = st.builds(
    Failure,
    valid_text,
    valid_text,
    valid_text,
    st.none() | st.floats(0, 1e6),
    st.lists(st.builds(Violation, valid_text, valid_text), max_size=2).map(tuple),
)
turns = st.builds(
    SavedTurn,
    keys=st.builds(TurnKeys, valid_text, valid_text, valid_text, valid_text),
    history=st.none() | valid_text.map(frozen),
    read_failure=st.none() | failures,
    already_recorded=st.booleans(),
    iterations=st.dictionaries(st.sampled_from(Phase), st.integers(1, 2**32 - 1)),
    calls=st.lists(calls, max_size=3).map(tuple),
)


@given(turns)
def test_a_saved_turn_comes_back_as_it_was(saved: SavedTurn) -> None:
    """Everything of a turn survives, in ASCII, also where the store cannot take more."""
    text = dump(saved)
    assert text.isascii()
    assert load(text) == saved


SAMPLE = SavedTurn(
    TurnKeys("s", "c", "t", "w"),
    frozen("block"),
    Failure("OK", "x", "m", 0.5, (Violation("f", "d"),)),
    False,
    {Phase.EXECUTE: 2},
    (ToolCall("n", "{}", CallKind.READ, True, "e", ("k",)),),
)


def spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value within a JSON value, but for the whole."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [spot for key, one in inner for spot in ((*path, key), *spots(one, (*path, key)))]


def damages() -> Iterator[Any]:
    """The sample with one value of a wrong type or missing, for each value and damage that leaves no other turn."""
    text = dump(SAMPLE)
    for *way, last in spots(json.loads(text)):
        damage: Any
        for damage in ({}, [None], True, 7, "x", "missing"):
            data = at = json.loads(text)
            for key in way:
                at = at[key]
            kind = type(at[last])
            if damage == "missing" and isinstance(at, dict) and last != "execute":
                del at[last]
            elif kind is not type(damage) and (last, damage) not in (("iterations", {}), ("retry_after", 7)):
                at[last] = damage
            else:
                continue
            yield pytest.param(data, id=f"{'.'.join(map(str, (*way, last)))}={damage}")


@pytest.mark.parametrize("data", list(damages()))
def test_a_damaged_saved_turn_is_refused(data: Any) -> None:
    """A value of a wrong type, or one that is missing, anywhere, is an InvalidSavedTurn and nothing else."""
    with pytest.raises(InvalidSavedTurn):
        load(json.dumps(data))


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", "x", '{"turnledger_saved_turn": 2}', "[" * 100_000, '"\\ud800"']
)
def test_what_is_no_saved_turn_is_refused(text: str) -> None:
    """Other text, and a newer version, are an InvalidSavedTurn, which is a ValueError."""
    with pytest.raises(InvalidSavedTurn):
        load(text)
    assert issubclass(InvalidSavedTurn, ValueError)


def test_a_block_that_was_altered_is_refused() -> None:
    """The frozen bytes are checked against their digest."""
    with pytest.raises(InvalidSavedTurn, match="damaged"):
        load(dump(SAMPLE).replace('"block"', '"bl0ck"'))


def test_the_saved_form_of_version_1_is_read_for_good() -> None:
    """The text that version 1 wrote stays readable: this literal must never be changed."""
    digest = sha256(b"block").hexdigest()
    text = (
        '{"turnledger_saved_turn": 1, "keys": {"agent_handle": "s", "conversation_key": "c", "turn_id": "t", '
        '"work_key": "w"}, "history": {"state": "present", "text": "block", "digest": "' + digest + '", '
        '"bytes": 5, "shown": 1, "condensed": 2, "left_out": 3, "no_longer_kept": 4, "unreadable": 5}, '
        '"read_failure": {"code": "OK", "reason": "x", "message": "m", "retry_after": 0.5, '
        '"violations": [{"field": "f", "description": "d"}]}, "already_recorded": false, '
        '"iterations": {"execute": 2}, "calls": [{"name": "n", "arguments": "{}", '
        '"kind": "read", "failed": true, "error": "e", "sensitive": ["k"]}]}'
    )
    assert load(text) == SAMPLE
    assert dump(SAMPLE) == text


@pytest.mark.parametrize(("one", "other"), [(Ledger, BlockingLedger), (Turn, BlockingTurn)])
def test_the_two_shells_have_the_same_surface(one: type, other: type) -> None:
    """Every public method has the same parameters and the same words in both."""

    def surface(shell: type) -> dict[str, Any]:
        public = {name: value for name, value in vars(shell).items() if not name.startswith("_")}
        return {
            name: (inspect.getdoc(value), *(map(str, inspect.signature(value).parameters.values())))
            if inspect.isfunction(value)
            else inspect.getdoc(value)
            for name, value in public.items()
        }

    assert surface(one) == surface(other)
    assert len(surface(one)) >= 4


def status_with(name: str) -> bytes:
    """A status with one detail of the named type, whose bytes are no message."""
    detail = any_pb2.Any(type_url=f"type.googleapis.com/{name}", value=b"\xff")
    return status_pb2.Status(details=[detail]).SerializeToString()


@pytest.mark.parametrize("trailer", [b"", b"\xff\xff", status_with("a.b"), status_with("google.rpc.RetryInfo")])
def test_damaged_details_count_as_none(trailer: bytes) -> None:
    """Details that do not parse leave the status as it is."""
    failure = failure_of(grpc.StatusCode.UNAVAILABLE, None, [("grpc-status-details-bin", trailer)])
    assert failure == Failure("UNAVAILABLE", "UNREACHABLE")


def test_a_failure_in_a_log_has_no_foreign_text() -> None:
    """Neither str nor repr shows what whoever answered wrote, but for the transport's own words."""
    foreign = Failure("UNKNOWN", "UNKNOWN", "secret", None, (Violation("entry.trigger", "rule"),))
    assert str(foreign) == "UNKNOWN (entry.trigger)"
    assert "secret" not in repr(foreign)
    assert str(Failure("UNAVAILABLE", "UNREACHABLE", "no such file")) == "UNAVAILABLE UNREACHABLE: no such file"


def test_the_pure_modules_load_no_grpc() -> None:
    """The package, composition and the stubs' package are imported without the client's transport."""
    code = "import sys, turnledger, turnledger.compose, turnledger.core; sys.exit('grpc' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": ":".join(sys.path)}).returncode
        == 0
    )


def test_every_name_of_the_surface_is_there() -> None:
    """What the package says it has, it has; what it does not have is an AttributeError."""
    assert all(getattr(turnledger, name) is not None for name in turnledger.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = turnledger.nothing


def test_messages_of_any_size_pass_the_transport() -> None:
    """The transport's own 4 MB limit is lifted, and no proxy or retry of its own stands between."""
    assert dict(OPTIONS) | {"grpc.max_receive_message_length": -1, "grpc.enable_http_proxy": 0} == dict(OPTIONS)


def test_a_number_of_any_length_is_withheld_from_and_kept() -> None:
    """Numbers longer than Python reads stand as they are beside a withheld value, and may be withheld themselves."""
    digits = "9" * 5_000
    assert withheld(f'{{"id": {digits}, "key": 1}}', ("key",)) == f'{{"id": {digits}, "key": "(withheld)"}}'
    assert withheld(f'{{"id": -1.5e3, "key": {digits}}}', ("key",)) == '{"id": -1.5e3, "key": "(withheld)"}'
