"""The one place that logs, counts and calls the engine's hook, and never with text of an entry or of a prompt."""

import logging
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Final

from turnledger.entry import RunEnd
from turnledger.events import (
    Composer,
    Event,
    HistoryRead,
    MessageComposed,
    OrderFilled,
    TextRepaired,
    TurnEnded,
    TurnSettled,
    TurnsForgotten,
)
from turnledger.order import FillOutcome
from turnledger.stats import Counters
from turnledger.telemetry import NO_TELEMETRY, Telemetry
from turnledger.text import Mender

log: Final = logging.getLogger("turnledger")


class Reporter:
    """Reports what happened, by log, count and hooks. Raises TypeError if the engine's hook is a coroutine function."""

    def __init__(self, on_event: Callable[[Event], object] | None, telemetry: Telemetry = NO_TELEMETRY) -> None:
        if iscoroutinefunction(on_event):
            raise TypeError("on_event is called without await: give a plain function")
        self.counters = Counters()
        self._hooks = [hook for hook in (telemetry.observe, on_event) if hook is not None]

    def read(self, event: HistoryRead) -> None:
        """A turn began."""
        if event.failure is None:
            self.counters.add(reads=1)
        else:
            self.counters.failed(event.failure, read_failures=1)
            log.warning(
                "history could not be read, turn %r of %r runs without it: %s",
                event.keys.turn_id,
                event.keys.agent_handle,
                event.failure,
            )
        self._tell(event)

    def composed(self, event: MessageComposed, *, warn: bool) -> None:
        """A round has its message; `warn` if this is the first of its turn that the sidecar did not compose."""
        if event.composer is Composer.SIDECAR:
            self.counters.add(composed_by_sidecar=1)
        elif event.failure is not None:
            self.counters.failed(event.failure, composed_locally=1)
            log.log(
                logging.WARNING if warn else logging.DEBUG,
                "messages of turn %r of %r are composed by the client: %s",
                event.keys.turn_id,
                event.keys.agent_handle,
                event.failure,
            )
        self._tell(event)

    def ended(self, event: TurnEnded) -> None:
        """A turn ended."""
        failure = event.receipt.failure
        if failure is None:
            self.counters.ended(event.receipt)
        elif event.run_end is RunEnd.COMPLETED:
            self.counters.failed(failure, write_failures=1)
            log.warning(
                "turn %r of %r is not known to be recorded, attempts %d: %s",
                event.keys.turn_id,
                event.keys.agent_handle,
                event.receipt.attempts,
                failure,
            )
        else:
            self.counters.failed(failure, run_end_failures=1)
            log.info("turn %r ended %s, which the sidecar did not hear: %s", event.keys.turn_id, event.run_end, failure)
        self._tell(event)

    def settled(self, event: TurnSettled) -> None:
        """A settle was asked for."""
        if event.settlement.failure is None:
            self.counters.add(settled=1)
        else:
            self.counters.failed(event.settlement.failure, settle_failures=1)
            log.warning("a turn could not be settled: %s", event.settlement.failure)
        self._tell(event)

    def forgotten(self, event: TurnsForgotten) -> None:
        """A forget was asked for. Its failure is raised to the caller, who logs it as it likes."""
        if event.forgotten is not None:
            self.counters.add(forgotten=event.forgotten.forgotten)
        elif event.failure is not None:
            self.counters.failed(event.failure, forget_failures=1)
        self._tell(event)

    def filled(self, event: OrderFilled) -> None:
        """An order is over. Nothing of it ever reaches a turn, so this is all that anybody hears."""
        self.counters.add(
            rewriter_calls=event.calls,
            rewriter_prompt_tokens=event.prompt_tokens,
            rewriter_completion_tokens=event.completion_tokens,
        )
        outcome = {f"orders_{event.outcome}": 1}
        if event.failure is None:
            self.counters.add(**outcome)
        else:
            self.counters.failed(event.failure, **outcome)
        log.log(
            logging.WARNING if event.outcome in (FillOutcome.ERROR, FillOutcome.NOT_SENT) else logging.DEBUG,
            "a rewrite (%s) for %r ended %s after %d calls: %s",
            event.kind,
            event.keys.agent_handle,
            event.outcome,
            event.calls,
            event.error or event.failure or event.verdict,
        )
        self._tell(event)

    def repaired(self, mender: Mender) -> None:
        """A request's texts went through `mender`."""
        if mender.replaced:
            self.counters.add(repaired=mender.replaced)
            log.warning("%d lone surrogates became U+FFFD in %s", mender.replaced, ", ".join(mender.fields))
            self._tell(TextRepaired(mender.fields, mender.replaced))

    def _tell(self, event: Event) -> None:
        for hook in self._hooks:
            try:
                hook(event)
            except Exception:
                self.counters.add(hook_failures=1)
                log.exception("the on_event hook failed on %s", type(event).__name__)
