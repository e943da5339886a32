"""Composition of one round's user message: plain concatenation, and normative.

Every client composes the same bytes by itself when the sidecar does not answer, so that no round loses its block. The
vectors in `tests/conformance/compose.json` pin it for every language.
"""

from dataclasses import dataclass
from typing import Final

HISTORY_HEADING: Final = "## Earlier in this conversation"
TASK_HEADING: Final = "## Task"
PRIOR_WORK_HEADING: Final = "## Already done earlier in this turn"


@dataclass(frozen=True, slots=True)
class Parts:
    """What one user message is made of, each part verbatim; an empty part is left out.

    `history` is the finished block, heading included. It is empty for every phase but EXECUTE, after a failed read, and
    where there is no history: the message is then byte for byte the one of before the ledger.
    """

    context: str = ""
    history: str = ""
    task: str = ""
    prior_work: str = ""


def compose(parts: Parts) -> str:
    """The finished user message: the parts in their order, joined by one blank line."""
    pieces = (
        parts.context,
        parts.history,
        _under(TASK_HEADING, parts.task),
        _under(PRIOR_WORK_HEADING, parts.prior_work),
    )
    return "\n\n".join(piece for piece in pieces if piece)


def approximate_tokens(user_bytes: int) -> int:
    """A message's rough size in tokens: a quarter of its bytes, rounded up. No tokenizer's count."""
    return -(-user_bytes // 4)


def _under(heading: str, text: str) -> str:
    return f"{heading}\n\n{text}" if text else ""
