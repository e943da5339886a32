"""The language-neutral vectors hold for this implementation too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from turnledger.identity import Identity, Message, batch_identity, digest, identify, work_key

FOLDER = Path(__file__).resolve().parents[1] / "conformance"


def _load(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return content


IDENTITY = _load("identity.json")
WORK_KEYS = _load("work_key.json")["cases"]
DIGESTS = _load("digest.json")["cases"]
CASES = {case["name"]: case for case in IDENTITY["cases"]}


def _run(name: str) -> Identity:
    case = CASES[name]
    return identify(case["source"], case["payload"], case.get("event"))


@pytest.mark.parametrize("name", CASES)
def test_a_payload_has_the_keys_of_its_vector(name: str) -> None:
    """Each payload gives its conversation and partition, or an `event:` key and a reason."""
    case, found = CASES[name], _run(name)
    if case["conversation_key"] == "event:":
        assert found.conversation_key == found.partition_key
        assert found.conversation_key.startswith("event:")
        assert found.reason
        assert "failed" not in found.reason
        assert not found.has_conversation
    else:
        assert found.conversation_key == case["conversation_key"]
        assert found.partition_key == case["partition_key"]
        assert found.reason == ""
        assert found.has_conversation


@pytest.mark.parametrize("names", IDENTITY["same_trigger"], ids=lambda names: names[0])
def test_one_happening_has_one_trigger_id(names: list[str]) -> None:
    """Deliveries of one happening share their trigger id."""
    assert len({_run(name).trigger_id for name in names}) == 1


@pytest.mark.parametrize("names", IDENTITY["different_trigger"], ids=lambda names: names[0])
def test_two_happenings_have_two_trigger_ids(names: list[str]) -> None:
    """Happenings that only look alike keep their own trigger ids."""
    assert len({_run(name).trigger_id for name in names}) == len(names)


@pytest.mark.parametrize("batch", IDENTITY["batches"], ids=lambda batch: batch["name"])
def test_a_batch_has_the_conversation_of_its_vector(batch: dict[str, Any]) -> None:
    """A batch belongs to the first conversation among its members."""
    found = batch_identity(_run(name) for name in batch["members"])
    if batch["conversation_key"] == "event:":
        assert found == _run(batch["members"][0])
    else:
        assert found.conversation_key == batch["conversation_key"]


@pytest.mark.parametrize("case", WORK_KEYS, ids=lambda case: case["name"])
def test_trigger_ids_give_the_work_key_of_their_vector(case: dict[str, Any]) -> None:
    """Trigger ids give exactly this work key."""
    assert work_key(case["trigger_ids"]) == case["work_key"]


@pytest.mark.parametrize("case", DIGESTS, ids=lambda case: case["name"])
def test_messages_give_the_digest_of_their_vector(case: dict[str, Any]) -> None:
    """Messages give exactly this digest."""
    assert digest([Message(**message) for message in case["messages"]]) == case["digest"]
