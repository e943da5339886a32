"""A load by ghz, as the page has it, and the sums that must hold afterwards."""

import json
import re
from typing import Final

import grpc
from turnledger.limits import TRANSPORT_BYTES
from turnledger.v1 import entry_pb2, record_pb2, render_pb2
from turnledger.v1.record_pb2_grpc import RecordStub
from turnledger.v1.render_pb2_grpc import RenderStub

_COMMAND: Final = re.compile(r"^```bash\n(?P<command>ghz .*?)^```$", re.MULTILINE | re.DOTALL)

SEAT: Final = "scout"
CONVERSATION: Final = "load:1"
TURNS: Final = 1000
DELIVERIES: Final = 2
KEPT: Final = 20


def command(page: str) -> str:
    """The page's command, its report as JSON. Raises ValueError where the page has none."""
    found = _COMMAND.search(page)
    if found is None:
        raise ValueError("the page shows no load by ghz")
    return found["command"].replace("ghz ", "ghz --format json ", 1)


def complaints(report: str, target: str) -> list[str]:
    """Where ghz's report and the ledger behind `target` do not add up; none if they do."""
    with grpc.insecure_channel(target, options=[("grpc.max_receive_message_length", TRANSPORT_BYTES)]) as channel:
        record, render = RecordStub(channel), RenderStub(channel)
        again = [record.Append(_delivery(f"w{number}")) for number in range(TURNS)]
        asked = render_pb2.HistoryRequest(agent_handle=SEAT, conversation_key=CONVERSATION)
        history = render.History(asked).history
        after = record.Append(_delivery("after"))
    sums = {
        "statuses": (json.loads(report)["statusCodeDistribution"], {"OK": TURNS * DELIVERIES}),
        "dispositions": ({answer.disposition for answer in again}, {record_pb2.DISPOSITION_DUPLICATE}),
        "ordinals": (sorted(answer.ordinal for answer in again), list(range(1, TURNS + 1))),
        "different entries": (len({answer.entry_id for answer in again}), TURNS),
        "shown and no longer kept": (
            (history.shown + history.condensed + history.left_out, history.no_longer_kept),
            (KEPT, TURNS - KEPT),
        ),
        "the next ordinal": (after.ordinal, TURNS + 1),
    }
    return [f"{name}: expected {expected}, came {came}" for name, (came, expected) in sums.items() if came != expected]


def rate(report: str) -> float:
    """Calls a second, by ghz's own count."""
    return float(json.loads(report)["rps"])


def _delivery(work_key: str) -> record_pb2.AppendRequest:
    entry = entry_pb2.Entry(turn_id="run-again", trigger="Go.", reply="Gone.", decision="done")
    entry.completed_at.FromJsonString("2026-03-01T09:00:00Z")
    return record_pb2.AppendRequest(
        agent_handle=SEAT,
        conversation_key=CONVERSATION,
        work_key=work_key,
        run_end=record_pb2.RUN_END_COMPLETED,
        entry=entry,
    )
