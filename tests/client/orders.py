"""A turn that leaves orders."""

from typing import Any

from turnledger import Reply

from tests.client.scripted_sidecar import KEYS, order, with_orders


def five() -> Any:
    """An Append that names five orders."""
    return with_orders(*(order(f"o-{number}") for number in range(5)))


async def completed(ledger: Any, conversation_key: str = KEYS["conversation_key"], **options: Any) -> Any:
    """A turn from its begin to its receipt."""
    turn = await ledger.begin(**{**KEYS, "conversation_key": conversation_key})
    return await turn.complete(Reply("bye"), trigger="T", **options)
