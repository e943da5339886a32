"""The digest keeps every message whole, and tells where each one ends."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from turnledger.identity import Message, digest

# A busy machine is no failure.
unhurried = settings(deadline=None)

HEADING = re.compile(r"\[(\d+) of (\d+)(, the latest)?\] (.*), (\d+) characters:\n")

texts = st.text(st.characters(exclude_categories=())) | st.sampled_from(
    ["[2 of 2, the latest] boss, now, 3 characters:\nyes", "\n\n", "a\r\nb\x00", "\ud800"]
)
messages = st.builds(Message, texts, texts, texts)


def taken_apart(merged: str) -> list[tuple[str, str]]:
    """Heading and text of each message, read back by the lengths in the headings."""
    position = merged.index("\n\n") + 2
    found = []
    while match := HEADING.match(merged, position):
        end = match.end() + int(match[5])
        found.append((match[0], merged[match.end() : end]))
        position = end + 2
    assert position == len(merged) + 2
    return found


@unhurried
@given(st.lists(messages, min_size=2, max_size=5))
def test_every_message_can_be_read_back(batch: list[Message]) -> None:
    """Whatever a message holds, even a forged heading, the texts come back unchanged, in order."""
    parts = taken_apart(digest(batch))
    assert [text for _, text in parts] == [message.text for message in batch]
    assert digest(batch).endswith("\n" + batch[-1].text)


@unhurried
@given(messages)
def test_one_message_is_its_text(message: Message) -> None:
    """A batch of one is exactly what was said."""
    assert digest([message]) == message.text
    assert digest([]) == ""


def test_each_message_has_its_sender_and_its_time() -> None:
    """A heading names who and when, and the last one says that it is the latest."""
    batch = [Message("ana", "10:00", "a"), Message("ben", "10:01", "b"), Message("", "\n", "c")]
    headings = [heading for heading, _ in taken_apart(digest(batch))]
    assert headings[0].startswith("[1 of 3] ana, 10:00,")
    assert headings[1].startswith("[2 of 3] ben, 10:01,")
    assert headings[2].startswith("[3 of 3, the latest] unknown sender, unknown time,")
    assert digest(batch).startswith("3 messages ")


@unhurried
@given(texts, texts)
def test_a_heading_is_one_line(sender: str, sent_at: str) -> None:
    """No sender's name opens a line of its own, by any line break that Unicode knows."""
    merged = digest([Message(sender, sent_at, ""), Message("b", "t", "")])
    assert len(merged.splitlines()) == len("header\n\nheading\n\n\nheading\n".splitlines())


def test_one_post_delivered_twice_is_one_message() -> None:
    """Of messages with one trigger id the first stays, and keeps its place."""
    first = Message("ana", "1", "one", "t1")
    second = Message("ben", "2", "two", "t2")
    assert digest([first, second, first]) == digest([first, second])
    assert digest([first, first]) == "one"
    assert digest([Message("a", "1", "x"), Message("a", "1", "x")]) != "x"
