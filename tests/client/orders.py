"""A turn that leaves orders."""

from typing import Any

from turnledger import Reply

from tests.client.scripted_sidecar import KEYS, order, with_orders


def five() -> Any:
    """An Append that names five orders."""
    return with_orders(*(order(f"o-{number}") for number in range(5)))


async def completed(ledger: Any, **options: Any) -> Any:
    """A turn from its begin to its receipt."""
    turn = await ledger.begin(**KEYS)
    return await turn.complete(Reply("bye"), trigger="T", **options)
