"""The digest: a batch of messages merged, verbatim, into the one trigger of their turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Everything that some reader takes for a line break; a heading is exactly one line.
_LINE_BREAKS = re.compile("[\\x00-\\x1f\\x7f\x85\u2028\u2029]+")

UNKNOWN_SENDER = "unknown sender"
UNKNOWN_TIME = "unknown time"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a batch: who sent it, when (as its source writes it), what it says.

    `trigger_id` is optional: of messages with one id only the first counts.
    """

    sender: str
    sent_at: str
    text: str
    trigger_id: str = ""


def digest(messages: Sequence[Message]) -> str:
    """One text of all messages, in the order given, which is the order in which they came.

    A header, then each message under a heading with its sender, time and length in characters
    (code points), whole and unchanged; the latest is last. The lengths tell where a message
    ends, whatever it holds. One message gives exactly its text, none gives the empty text.
    """
    distinct = _distinct(messages)
    if len(distinct) <= 1:
        return "".join(message.text for message in distinct)
    total = len(distinct)
    sections = [_section(message, index, total) for index, message in enumerate(distinct, 1)]
    return "\n\n".join([_header(total), *sections])


def _distinct(messages: Iterable[Message]) -> list[Message]:
    seen: set[str] = set()
    distinct = []
    for message in messages:
        if message.trigger_id and message.trigger_id in seen:
            continue
        seen.add(message.trigger_id)
        distinct.append(message)
    return distinct


def _header(total: int) -> str:
    return f"{total} messages came together. All of them follow, in full, the latest last."


def _section(message: Message, index: int, total: int) -> str:
    sender = _one_line(message.sender) or UNKNOWN_SENDER
    sent_at = _one_line(message.sent_at) or UNKNOWN_TIME
    latest = ", the latest" if index == total else ""
    heading = f"[{index} of {total}{latest}] {sender}, {sent_at}, {len(message.text)} characters:"
    return f"{heading}\n{message.text}"


def _one_line(value: str) -> str:
    return _LINE_BREAKS.sub(" ", value).strip()
