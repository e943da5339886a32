"""Sizes of one user message and of its parts, in bytes of UTF-8."""

from dataclasses import dataclass

from turnledger.compose import Parts, approximate_tokens


@dataclass(frozen=True, slots=True)
class PromptSize:
    """The finished message, each part without what composition adds, and `user_bytes` / 4 rounded up."""

    user_bytes: int
    history_bytes: int
    task_bytes: int
    context_bytes: int
    prior_work_bytes: int
    approximate_tokens: int


def prompt_size(message: str, parts: Parts) -> PromptSize:
    """The sizes of `message`, which was composed of `parts`."""
    user_bytes = _bytes(message)
    return PromptSize(
        user_bytes=user_bytes,
        history_bytes=_bytes(parts.history),
        task_bytes=_bytes(parts.task),
        context_bytes=_bytes(parts.context),
        prior_work_bytes=_bytes(parts.prior_work),
        approximate_tokens=approximate_tokens(user_bytes),
    )


def _bytes(text: str) -> int:
    return len(text.encode())
