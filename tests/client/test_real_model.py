"""A small real model, where `make demo-llm` has set one up and the variable names its interpreter."""

import os
from collections import Counter
from typing import Final

import pytest
from turnledger import FillOutcome

from tests.client.real_sidecar import real_sidecar
from tools.demo_llm import MAX_ENTRIES, play, real_model
from tools.llm_story import story

#: The interpreter of .venv-llm.
VARIABLE: Final = "TURNLEDGER_LLM_PYTHON"

#: How many turns to play: 60 unless this variable says fewer, for a first look.
TURNS_VARIABLE: Final = "TURNLEDGER_LLM_TURNS"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),  # a quarter of an hour on two busy cores
    pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no interpreter"),
]


async def test_whatever_a_real_model_writes_the_block_stays_true() -> None:
    """Every order comes to an end, what is accepted is told, and no line of facts is wrong."""
    turns = story(int(os.environ.get(TURNS_VARIABLE, "60")))
    with real_model(os.environ[VARIABLE]) as url, real_sidecar(MAX_ENTRIES) as target:
        outcome = await play(target, url, turns)
    assert outcome.wrong == []
    assert outcome.history is not None
    ended = Counter(event.outcome for event in outcome.filled)
    assert ended[FillOutcome.ACCEPTED] + ended[FillOutcome.REJECTED] >= len(turns)
    assert outcome.stats.orders_accepted == ended[FillOutcome.ACCEPTED]
    assert outcome.stats.rewriter_completion_tokens > 0
