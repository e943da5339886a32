import signal
import time
from pathlib import Path

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from turnledger.compose import Parts

from sidecar.config.settings import ConversationSession
from sidecar.domain.eligibility import Conversation
from sidecar.domain.prompt import Phase, Round
from sidecar.services.render import Render
from sidecar.store.store import Store
from sidecar.telemetry.prompt_size import prompt_size_reporter
from tests.support import asking
from tests.support.running import calling, free_port, process

_ROUND = Round(Conversation("scout", "jira:POC-7"), "0a1b2c3d", Phase.EXECUTE, 2, tool_bytes=7)


@pytest.fixture(name="exported")
def _exported() -> InMemoryLogRecordExporter:
    return InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # the SDK leaves it untyped


@pytest.fixture(name="render")
def _render(exported: InMemoryLogRecordExporter, tmp_path: Path) -> Render:
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exported))
    report = prompt_size_reporter(provider.get_logger("test"))
    return Render(Store(tmp_path / "store.db", clock=lambda: 0), ConversationSession, report)


async def test_each_message_is_one_event_with_its_sizes(render: Render, exported: InMemoryLogRecordExporter) -> None:
    """One UserMessage is one `prompt.size` event, whose sizes are the bytes of the message and of its parts."""
    text, _ = render.user_message(_ROUND, Parts("ü", "## Earlier in this conversation", "täsk", "done"))
    [record] = [found.log_record for found in exported.get_finished_logs()]
    assert record.event_name == "prompt.size"
    assert record.timestamp
    assert dict(record.attributes or {}) == {
        "user_bytes": len(text.encode()),
        "history_bytes": 31,
        "task_bytes": 5,
        "context_bytes": 2,
        "prior_work_bytes": 4,
        "approximate_tokens": -(-len(text.encode()) // 4),
        "tool_bytes": 7,
        "phase": "execute",
        "iteration": 2,
        "agent_handle": "scout",
        "conversation_key": "jira:POC-7",
        "turn_id": "0a1b2c3d",
        "composer": "sidecar",
    }


async def test_other_phases_report_no_history(render: Render, exported: InMemoryLogRecordExporter) -> None:
    """A reviewer's message holds no block, and its event says so."""
    review = Round(_ROUND.conversation, _ROUND.turn_id, Phase.REVIEW, 1)
    render.user_message(review, Parts("", "## Earlier in this conversation", "task", ""))
    [record] = [found.log_record for found in exported.get_finished_logs()]
    assert record.attributes
    assert (record.attributes["phase"], record.attributes["history_bytes"]) == ("review", 0)
    assert "system_bytes" not in record.attributes


async def test_a_dead_collector_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """With events to export and nobody to take them, SIGTERM still ends the process with 0 within a few seconds."""
    collector = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    async with process(f"unix://{tmp_path}/s.sock", store=tmp_path / "store.db", variables=collector) as sidecar:
        await sidecar.says("the store is open")
        async with calling(sidecar.target) as caller:
            for _ in range(20):
                await caller.render.UserMessage(asking.user_message())
        began = time.monotonic()
        sidecar.send(signal.SIGTERM)
        assert await sidecar.ended() == 0
        assert time.monotonic() - began < 5
