"""The event `prompt.size`: one for each composed round."""

import time
from collections.abc import Callable

from opentelemetry._logs import Logger, SeverityNumber

from sidecar.domain.prompt import PromptSize, Round
from sidecar.telemetry.logs import context_of
from sidecar.telemetry.spans import CURRENT

EVENT_NAME = "prompt.size"


def prompt_size_reporter(logger: Logger) -> Callable[[Round, PromptSize], None]:
    """A function that emits the event on `logger`. Sizes are bytes of UTF-8."""

    def report(this: Round, size: PromptSize) -> None:
        attributes: dict[str, str | int] = {
            "user_bytes": size.user_bytes,
            "history_bytes": size.history_bytes,
            "task_bytes": size.task_bytes,
            "context_bytes": size.context_bytes,
            "prior_work_bytes": size.prior_work_bytes,
            "approximate_tokens": size.approximate_tokens,
            "phase": this.phase.value,
            "iteration": this.iteration,
            "agent_handle": this.conversation.agent_handle,
            "conversation_key": this.conversation.conversation_key,
            "turn_id": this.turn_id,
            "composer": "sidecar",
        }
        given = {"system_bytes": this.system_bytes, "tool_bytes": this.tool_bytes}
        attributes |= {name: value for name, value in given.items() if value is not None}
        logger.emit(
            event_name=EVENT_NAME,
            timestamp=time.time_ns(),
            severity_number=SeverityNumber.INFO,
            attributes=attributes,
            context=context_of(CURRENT.get()),
        )

    return report
