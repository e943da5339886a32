"""The turns that `demo_llm` plays, all in one conversation, each with a bulky argument; and what must hold of them."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.replay.turns import Called, Turn, real_turns

SEAT: Final = "demo"
CONVERSATION: Final = "jira:DEMO-1"

_HEADING: Final = re.compile(r"^### .* \(turn (\S+)\)$")
_ITEM: Final = re.compile(r"^- .* \(turn (\S+)\): (.*)$")


def story(count: int) -> list[Turn]:
    """So many turns: real ones where there are, else invented ones. Every fifth text reached nobody."""
    found = real_turns()[-count:] or [_invented(number) for number in range(count)]
    return [_in_one_conversation(number, found[number % len(found)]) for number in range(count)]


def untrue(block: str, turns: Sequence[Turn]) -> list[str]:
    """What the block says wrongly about whether a turn's text was delivered, by the lines that the sidecar wrote."""
    delivered = {turn.turn_id: turn.delivered for turn in turns}
    wrong = []
    turn_id = ""
    for line in block.split("\n"):
        replied = None
        if heading := _HEADING.match(line):
            turn_id = _full(heading[1], turns)
        elif line.startswith(("You replied", "You did NOT reply")):
            replied = line.startswith("You replied")
        elif item := _ITEM.match(line):
            turn_id, replied = _full(item[1], turns), not item[2].startswith("did NOT reply")
        if replied not in (None, delivered.get(turn_id)):
            wrong.append(line)
    return wrong


def _full(short_id: str, turns: Sequence[Turn]) -> str:
    (turn_id,) = (turn.turn_id for turn in turns if turn.turn_id.startswith(short_id))
    return turn_id


def _in_one_conversation(number: int, turn: Turn) -> Turn:
    body = f"Subject: turn {number}\n\n{turn.final_text}\n\nSent by the support desk, case {number:04}."
    mail = Called("send_mail", json.dumps({"to": f"customer-{number}", "body": body.ljust(260, ".")}))
    return replace(
        turn,
        agent_handle=SEAT,
        conversation_key=CONVERSATION,
        work_key=f"work-{number}",
        turn_id=f"{number:08x}-demo",
        delivered=number % 5 != 0,
        calls=(*turn.calls, mail),
    )


def _invented(number: int) -> Turn:
    return Turn(
        agent_handle=SEAT,
        conversation_key=CONVERSATION,
        work_key="",
        turn_id="",
        trigger=f"Mira Okafor: where is order {20900 + number}? It was to be here on 2026-03-{number % 28 + 1:02}.",
        final_text=(
            f"Order {20900 + number} left our house on 2026-03-{number % 28 + 1:02} with parcel P-{7000 + number}. "
            "The carrier says that it waits at the depot since the address was incomplete. I sent the full address, "
            "and the carrier promised a new attempt within two days. If it does not arrive, I will send it once more. "
        )
        * 3,
        completed_at=datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=number),
    )
