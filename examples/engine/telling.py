"""What the ledger answered, in a person's words.

Take from it: these are all the answers there are. None of them is an exception, and none needs a decision.
"""

from turnledger import Disposition, Receipt, Settlement, Turn


def about_history(turn: Turn) -> str:
    """What the turn knows."""
    history = turn.history
    if history is None:
        return f"no history, it could not be read ({turn.read_failure}): the turn runs without"
    if not history.text:
        return f"history {history.state}"
    return f"history of {history.shown} turn(s), {history.bytes} bytes, digest {history.digest[:8]}"


def about_receipt(receipt: Receipt) -> str:
    """What became of the entry."""
    if receipt.failure is not None:
        return f"NOT recorded after {receipt.attempts} attempt(s) ({receipt.failure}): over all the same"
    if receipt.disposition is Disposition.SKIPPED:
        return f"not for the ledger: {receipt.skip_reason}"
    return f"{receipt.disposition} as entry {receipt.ordinal} of the conversation"


def about_settlement(settlement: Settlement) -> str:
    """What became of a settle."""
    return f"settle failed ({settlement.failure}), to be tried again" if settlement.failure else f"{settlement.outcome}"
