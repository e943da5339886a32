"""Counts of what a ledger did since it was made."""

import threading
from dataclasses import dataclass, replace

from turnledger.answers import Disposition, Receipt
from turnledger.failure import TOO_LARGE, Failure


@dataclass(frozen=True, slots=True)
class Stats:
    """A snapshot. Each counts calls of the engine, not tries on the wire, unless it says otherwise."""

    #: Turns that began with an answer: a block, nothing there, or switched off.
    reads: int = 0
    #: Turns that began without one, since the history could not be read.
    read_failures: int = 0
    #: Messages that the sidecar composed.
    composed_by_sidecar: int = 0
    #: Messages that were composed here, since the sidecar did not answer.
    composed_locally: int = 0
    #: Turns written by this call, ...
    recorded: int = 0
    #: ... there already, ...
    duplicates: int = 0
    #: ... not for the ledger (crashed and suspended runs among them), ...
    skipped: int = 0
    #: ... and lost to a failure.
    write_failures: int = 0
    #: Runs whose suspension or crash the sidecar did not hear of. Nothing was to be recorded.
    run_end_failures: int = 0
    settled: int = 0
    settle_failures: int = 0
    #: Turns that were erased.
    forgotten: int = 0
    forget_failures: int = 0
    #: Orders whose rewrite was stored, ...
    orders_accepted: int = 0
    #: ... not taken by the sidecar, ...
    orders_rejected: int = 0
    #: ... lost to what the rewriter raised, ...
    orders_error: int = 0
    #: ... without budget, ...
    orders_no_budget: int = 0
    #: ... out of time, ...
    orders_deadline: int = 0
    #: ... rewritten, with a sidecar that could not be told, ...
    orders_not_sent: int = 0
    #: ... and given up by `close`, or in too large a crowd.
    orders_abandoned: int = 0
    #: Calls of the rewriter, retries among them, and what they took as far as it said so.
    rewriter_calls: int = 0
    rewriter_prompt_tokens: int = 0
    rewriter_completion_tokens: int = 0
    #: Of all failures, those over the message limit.
    too_large: int = 0
    #: Tries on the wire after the first.
    retries: int = 0
    #: Lone surrogates that became U+FFFD.
    repaired: int = 0
    #: Exceptions that the `on_event` hook raised.
    hook_failures: int = 0


class Counters:
    """The live counts behind `Stats`, for many threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stats = Stats()

    def add(self, **counts: int) -> None:
        """Add to the named counts."""
        with self._lock:
            changed = {name: getattr(self._stats, name) + count for name, count in counts.items()}
            self._stats = replace(self._stats, **changed)

    def failed(self, failure: Failure, **counts: int) -> None:
        """Add to the named counts, and to that of the failure's own reason."""
        self.add(too_large=failure.reason == TOO_LARGE, **counts)

    def ended(self, receipt: Receipt) -> None:
        """Count what became of a turn."""
        match receipt.disposition:
            case Disposition.RECORDED:
                self.add(recorded=1)
            case Disposition.DUPLICATE:
                self.add(duplicates=1)
            case Disposition.SKIPPED:
                self.add(skipped=1)

    def snapshot(self) -> Stats:
        """The counts as they stand."""
        return self._stats
