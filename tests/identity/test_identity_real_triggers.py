"""Real webhook payloads, replayed from the folder that `TURNLEDGER_DATA` names."""

from __future__ import annotations

import copy
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from turnledger.identity import SOURCES, Identity, identify

VARIABLE = "TURNLEDGER_DATA"

pytestmark = pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no folder")


def load_rows() -> list[dict[str, Any]]:
    """Every row; a folder that is named and cannot be read is an error, never an empty list."""
    if VARIABLE not in os.environ:
        return []
    lines = (Path(os.environ[VARIABLE]) / "triggers.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


ROWS = load_rows()
NAMES = [f"{number}-{row['source']}-{row['kind']}" for number, row in enumerate(ROWS, 1)]

each_row = pytest.mark.parametrize("row", ROWS or [{}], ids=NAMES or ["no folder"])


def _replay(row: dict[str, Any], *, event: bool = True) -> Identity:
    return identify(row["source"], row["payload"], row["event"] if event else None)


def _assert_expected(row: dict[str, Any], found: Identity) -> None:
    for name in ("conversation_key", "partition_key"):
        expected, value = row[name], getattr(found, name)
        assert value.startswith("event:") if expected == "event:{uuid}" else value == expected
    assert bool(found.reason) == (row["conversation_key"] == "event:{uuid}")


def test_rows_of_every_source_are_replayed() -> None:
    """A run that was given a folder replays rows of each source, or fails."""
    counted = Counter(row["source"] for row in ROWS)
    assert set(counted) == set(SOURCES)
    assert all(counted.values())


@each_row
def test_a_real_payload_has_its_identity(row: dict[str, Any]) -> None:
    """Source, payload and event alone give the conversation and the partition."""
    _assert_expected(row, _replay(row))


@each_row
def test_the_payload_is_enough(row: dict[str, Any]) -> None:
    """An engine that lost the event's name finds the same conversation."""
    _assert_expected(row, _replay(row, event=False))


@each_row
def test_a_payload_means_nothing_to_another_source(row: dict[str, Any]) -> None:
    """Whatever another source sent never opens a conversation."""
    for source in set(SOURCES) - {row["source"]}:
        for event in (row["event"], None):
            assert not identify(source, row["payload"], event).has_conversation


@each_row
def test_a_redelivery_is_the_same_trigger(row: dict[str, Any]) -> None:
    """Other delivery ids, tokens and key order change nothing, and nothing is written to."""
    before = copy.deepcopy(row["payload"])
    again = dict(reversed(json.loads(json.dumps(row["payload"])).items()))
    if row["source"] == "slack" and "event" in again:
        again |= {"event_id": "EvAgain", "token": "other", "authorizations": []}
    assert _replay({**row, "payload": again}) == _replay(row)
    assert row["payload"] == before


def test_posts_and_their_mentions_are_one_trigger() -> None:
    """A post that arrives as `message` and as `app_mention` has one trigger id."""
    posts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in ROWS:
        inner = row["payload"].get("event")
        if row["source"] == "slack" and row["event"] in {"message", "app_mention"}:
            posts.setdefault((inner["channel"], inner["ts"]), []).append(row)
    pairs = [rows for rows in posts.values() if len({row["event"] for row in rows}) == 2]
    assert pairs
    assert all(len({_replay(row).trigger_id for row in rows}) == 1 for rows in pairs)
