"""The conversation that `turnledger demo` plays: a support seat and one ticket, over four turns.

Everything in it is invented. It holds what a ledger has to get right: reads and writes, a write that failed, a reply
that nobody received, a blocked turn, several messages that arrived as one, a long payload, and a value that is nobody's
business.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from turnledger import CallKind, Reply, Unsent
from turnledger.identity import Message, digest, work_key

AGENT_HANDLE: Final = "support"
CONVERSATION_KEY: Final = "jira:SHOP-4812"

#: The engine's other blocks, and the ask of the turn that is about to begin.
CONTEXT: Final = "You are Support, the seat that answers tickets of the web shop. Today is Thursday, 2026-03-05."
NEXT_TASK: Final = "Mira Okafor wrote: Any news on my refund? You said it would be there by Wednesday."


@dataclass(frozen=True, slots=True)
class Called:
    """One tool call. `error` is None for a call that succeeded."""

    name: str
    arguments: str
    kind: CallKind
    error: str | None = None
    sensitive: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Played:
    """One turn of the story."""

    about: str
    turn_id: str
    work_key: str
    completed_at: datetime
    trigger: str
    intent: str
    calls: tuple[Called, ...]
    outcome: Reply | Unsent
    decision: str = "done"
    completed_work: str = ""
    blocked_on: str = ""


def _at(day: int, hour: int, minute: int) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


def _message(sender: str, day: int, hour: int, minute: int, text: str) -> Message:
    return Message(sender, f"2026-03-{day:02}T{hour:02}:{minute:02}:00Z", text)


_STATEMENT: Final = (
    "Dear Ms Okafor, this statement confirms that order 20931 was charged twice on 27 February 2026, 129.90 EUR each"
    " time, that the second charge was an error of ours, and that it is to be returned in full to the account from"
    " which it was taken. Please keep it for your records. Kind regards, the web shop's support team."
)

TURNS: Final = (
    Played(
        about="reads, and a write",
        turn_id="0195b7f0-52c1-7a44-9c1e-6f20d5a1e801",
        work_key=work_key(["jira:comment:90121"]),
        completed_at=_at(2, 9, 14),
        trigger="Mira Okafor: I was charged twice for order 20931. Please fix this.",
        intent="Find out whether order 20931 was really charged twice, and get the second charge returned.",
        calls=(
            Called("get_order", '{"order_id": 20931}', CallKind.READ),
            Called("list_payments", '{"order_id": 20931, "limit": 10}', CallKind.READ),
            Called("create_refund", '{"payment_id": 9007199254740993, "amount": 129.90}', CallKind.WRITE),
        ),
        outcome=Reply(
            "You are right, there are two charges of 129.90 EUR. I have ordered the refund of the second one; it\n"
            "should be with you by Wednesday."
        ),
    ),
    Played(
        about="a write that failed, and a reply that nobody received",
        turn_id="0195b7f0-5f3d-7b02-8e77-b1c04a9d2f10",
        work_key=work_key(["payments:refund:5521:rejected"]),
        completed_at=_at(3, 7, 40),
        trigger="The payment provider rejected refund 5521: the card was closed.",
        intent="Repeat the refund by bank transfer and tell the customer.",
        calls=(
            Called(
                "create_transfer",
                '{"amount": 129.90, "iban": "DE02 1203 0000 0000 2020 51", "reference": "SHOP-4812"}',
                CallKind.WRITE,
                error="ledger closed for the nightly run, try again after 08:00",
                sensitive=("iban",),
            ),
            Called("add_comment", '{"issue": "SHOP-4812"}', CallKind.WRITE, error="503 from the ticket system"),
        ),
        outcome=Unsent("Your card was closed, so I am sending the 129.90 EUR to your bank account instead."),
        decision="failed",
    ),
    Played(
        about="a blocked turn",
        turn_id="0195bd41-0c55-7d90-a3f2-2e9b7716c4aa",
        work_key=work_key(["schedule:retry:SHOP-4812"]),
        completed_at=_at(3, 9, 5),
        trigger="Retry of what was left open on SHOP-4812.",
        intent="Send the transfer now that the nightly run is over.",
        calls=(Called("get_transfer_policy", '{"amount": 129.90}', CallKind.READ),),
        outcome=Reply("Your refund is waiting for an approval on our side. I will come back to you."),
        decision="blocked",
        blocked_on="create_transfer asks for a second approver above 100 EUR; approval A-77 is open with Finance.",
    ),
    Played(
        about="three messages that arrived as one, a long payload, a reviewer's word",
        turn_id="0195c2e8-91be-7113-b5d4-90cc3f1a7d62",
        work_key=work_key(["jira:comment:90180", "jira:comment:90181", "finance:approval:A-77"]),
        completed_at=_at(4, 13, 22),
        trigger=digest(
            [
                _message("Finance", 4, 12, 58, "Approval A-77 is granted."),
                _message("Mira Okafor", 4, 13, 1, "I also need something in writing for my bank."),
                _message("Mira Okafor", 4, 13, 2, "## Task\nA statement with the amounts and the date, please."),
            ]
        ),
        intent="Send the approved transfer, then the written statement.",
        calls=(
            Called(
                "create_transfer",
                '{"amount": 129.90, "iban": "DE02 1203 0000 0000 2020 51", "approval": "A-77"}',
                CallKind.WRITE,
                sensitive=("iban",),
            ),
            Called(
                "send_mail",
                f'{{"to": "customer of SHOP-4812", "subject": "Statement for order 20931", "body": "{_STATEMENT}"}}',
                CallKind.WRITE,
            ),
        ),
        outcome=Reply("The transfer is on its way, and the statement for your bank is in your mail."),
        completed_work="Transfer T-3301 is booked; the mail was accepted by the customer's server.",
    ),
)
