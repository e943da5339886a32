"""UserMessage over the wire: the message, its sizes, and who gets the block."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from turnledger.v1 import render_pb2

from sidecar.app import app as app_module
from sidecar.config.settings import ConversationSession
from sidecar.domain.prompt import PromptSize, Round
from tests.support import asking
from tests.support.running import Caller, running, settings

CONTEXT = "Context: \u00e9\U0001f642 \r\n\x00"
TASK = "## Task\n\nDo it \u2028 now."
PRIOR = "- looked (read)\n"


async def _block(caller: Caller) -> render_pb2.History:
    await caller.record.Append(asking.append())
    return (await caller.render.History(asking.history())).history


async def _compose(caller: Caller, **changes: Any) -> render_pb2.UserMessageResponse:
    return await caller.render.UserMessage(asking.user_message(**changes))


@pytest.mark.parametrize("parts", list(itertools.product([True, False], repeat=4)), ids=str)
async def test_parts_in_order_joined_by_a_blank_line(caller: Caller, parts: tuple[bool, bool, bool, bool]) -> None:
    """Each part stands in its place, verbatim; an empty one leaves no trace; the sizes are real byte counts."""
    history = await _block(caller)
    given = {
        "context": CONTEXT if parts[0] else "",
        "history": history if parts[1] else None,
        "task": TASK if parts[2] else "",
        "prior_work": PRIOR if parts[3] else "",
    }
    answer = await _compose(caller, **{name: value for name, value in given.items() if value is not None})
    expected = [
        CONTEXT if parts[0] else "",
        history.text if parts[1] else "",
        f"## Task\n\n{TASK}" if parts[2] else "",
        f"## Already done earlier in this turn\n\n{PRIOR}" if parts[3] else "",
    ]
    assert answer.text == "\n\n".join(filter(None, expected))
    size = answer.size
    assert size.user_bytes == len(answer.text.encode())
    assert size.context_bytes == len(CONTEXT.encode()) * parts[0]
    assert size.history_bytes == len(history.text.encode()) * parts[1]
    assert size.task_bytes == len(TASK.encode()) * parts[2]
    assert size.prior_work_bytes == len(PRIOR.encode()) * parts[3]
    assert size.approximate_tokens == -(-size.user_bytes // 4)


@pytest.mark.parametrize("phase", [render_pb2.PHASE_REVIEW, render_pb2.PHASE_OTHER, 77])
async def test_only_the_executor_gets_the_block(caller: Caller, phase: Any) -> None:
    """Every other phase, also one of a later contract, gets the message without the block, whatever it passes."""
    history = await _block(caller)
    with_block = await _compose(caller, phase=phase, history=history)
    assert with_block == await _compose(caller, phase=phase)
    assert with_block.text == "## Task\n\nAnswer the question."
    assert with_block.size.history_bytes == 0


@pytest.mark.parametrize("state", [render_pb2.HISTORY_STATE_EMPTY, render_pb2.HISTORY_STATE_DISABLED])
async def test_without_a_block_the_message_is_the_one_before_the_ledger(caller: Caller, state: Any) -> None:
    """EMPTY and DISABLED leave no heading, even where a text comes with them."""
    bare = await _compose(caller, context=CONTEXT, prior_work=PRIOR)
    for history in (render_pb2.History(state=state), render_pb2.History(state=state, text="stray")):
        assert await _compose(caller, context=CONTEXT, prior_work=PRIOR, history=history) == bare
    assert "Earlier in this conversation" not in bare.text


async def test_block_is_good_on_another_sidecar(tmp_path: Path) -> None:
    """A block is a value: another sidecar, even one that is switched off, composes the same bytes with it."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    async with running(settings(tmp_path / "one")) as caller:
        kept = (await _block(caller)).SerializeToString()
        first = await _compose(caller, history=render_pb2.History.FromString(kept))
    async with running(settings(tmp_path / "other", session=ConversationSession(enabled=False))) as caller:
        assert await _compose(caller, history=render_pb2.History.FromString(kept), iteration=9) == first


async def test_block_stays_frozen_while_the_ledger_grows(caller: Caller) -> None:
    """Rounds after further turns were recorded carry the very bytes of the first round."""
    history = await _block(caller)
    first = await _compose(caller, history=history)
    await caller.record.Append(asking.append("w2"))
    assert (await _compose(caller, history=history, iteration=2)).text == first.text


@pytest.mark.parametrize("given", [{}, {"system_bytes": 0}, {"system_bytes": 7, "tool_bytes": 2**40}])
async def test_each_message_reports_its_sizes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, int]
) -> None:
    """One round is one report, with what the caller gave of system and tool bytes, and no more."""
    reports: list[tuple[Round, PromptSize]] = []
    monkeypatch.setattr(app_module, "prompt_size_reporter", lambda _: lambda this, size: reports.append((this, size)))
    async with running(settings(tmp_path)) as caller:
        answer = await _compose(caller, iteration=3, **given)
    [(this, size)] = reports
    assert (this.system_bytes, this.tool_bytes) == (given.get("system_bytes"), given.get("tool_bytes"))
    assert (this.turn_id, this.iteration, this.phase.value) == ("0a1b2c3d-0002", 3, "execute")
    assert (size.user_bytes, size.task_bytes) == (answer.size.user_bytes, answer.size.task_bytes)


async def test_refused_message_reports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is refused is no round."""
    reports: list[object] = []
    monkeypatch.setattr(app_module, "prompt_size_reporter", lambda _: lambda *report: reports.append(report))
    async with running(settings(tmp_path)) as caller:
        with pytest.raises(Exception, match="iteration"):
            await _compose(caller, iteration=0)
    assert not reports
