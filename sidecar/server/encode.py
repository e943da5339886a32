"""From the domain to proto."""

from collections.abc import Sequence
from typing import Final

from turnledger.v1 import record_pb2, render_pb2

from sidecar.domain.block import History, HistoryState
from sidecar.domain.eligibility import Disposition, SkipReason
from sidecar.domain.prompt import PromptSize
from sidecar.services.record import Erasure, Forgotten
from sidecar.services.render import TurnStart
from sidecar.store.append import Appended
from sidecar.store.settle import Settled, SettleOutcome

_DISPOSITIONS: Final = {
    Disposition.RECORDED: record_pb2.DISPOSITION_RECORDED,
    Disposition.DUPLICATE: record_pb2.DISPOSITION_DUPLICATE,
    Disposition.SKIPPED: record_pb2.DISPOSITION_SKIPPED,
}

_SKIP_REASONS: Final = {
    None: record_pb2.SKIP_REASON_UNSPECIFIED,
    SkipReason.DISABLED: record_pb2.SKIP_REASON_DISABLED,
    SkipReason.RUN_CRASHED: record_pb2.SKIP_REASON_RUN_CRASHED,
    SkipReason.RUN_SUSPENDED: record_pb2.SKIP_REASON_RUN_SUSPENDED,
    SkipReason.NOT_REPRODUCIBLE: record_pb2.SKIP_REASON_NOT_REPRODUCIBLE,
    SkipReason.NO_WORK_KEY: record_pb2.SKIP_REASON_NO_WORK_KEY,
    SkipReason.FORGOTTEN: record_pb2.SKIP_REASON_FORGOTTEN,
}

_SETTLE_OUTCOMES: Final = {
    SettleOutcome.SETTLED: record_pb2.SETTLE_OUTCOME_SETTLED,
    SettleOutcome.ALREADY_REPLY: record_pb2.SETTLE_OUTCOME_ALREADY_REPLY,
    SettleOutcome.NOT_FOUND: record_pb2.SETTLE_OUTCOME_NOT_FOUND,
    SettleOutcome.NO_LONGER_KEPT: record_pb2.SETTLE_OUTCOME_NO_LONGER_KEPT,
}

_ERASURES: Final = {
    Erasure.COMPLETE: record_pb2.ERASURE_COMPLETE,
    Erasure.PENDING: record_pb2.ERASURE_PENDING,
}

_STATES: Final = {
    HistoryState.PRESENT: render_pb2.HISTORY_STATE_PRESENT,
    HistoryState.EMPTY: render_pb2.HISTORY_STATE_EMPTY,
    HistoryState.DISABLED: render_pb2.HISTORY_STATE_DISABLED,
}


def appended(answer: Appended) -> record_pb2.AppendResponse:
    """What became of an Append."""
    return record_pb2.AppendResponse(
        disposition=_DISPOSITIONS[answer.disposition],
        skip_reason=_SKIP_REASONS[answer.skip_reason],
        entry_id=answer.entry_id,
        ordinal=answer.ordinal,
    )


def settled(answer: Settled) -> record_pb2.SettleResponse:
    """What became of a Settle."""
    return record_pb2.SettleResponse(outcome=_SETTLE_OUTCOMES[answer.outcome], entry_id=answer.entry_id)


def forgotten(answer: Forgotten) -> record_pb2.ForgetResponse:
    """What a Forget erased."""
    return record_pb2.ForgetResponse(forgotten=answer.forgotten, erasure=_ERASURES[answer.erasure])


def no_order_open(order_ids: Sequence[str]) -> record_pb2.FitResponse:
    """The answer to fits while no orders are issued: none of them is open."""
    verdict = record_pb2.VERDICT_NOT_OPEN
    return record_pb2.FitResponse(
        results=[record_pb2.FitResult(order_id=order_id, verdict=verdict) for order_id in order_ids]
    )


def turn_start(answer: TurnStart) -> render_pb2.HistoryResponse:
    """A turn's history, and whether it ran before."""
    return render_pb2.HistoryResponse(history=_history(answer.history), already_recorded=answer.recorded)


def user_message(text: str, size: PromptSize) -> render_pb2.UserMessageResponse:
    """A round's message and its sizes."""
    return render_pb2.UserMessageResponse(
        text=text,
        size=render_pb2.PromptSize(
            user_bytes=size.user_bytes,
            history_bytes=size.history_bytes,
            task_bytes=size.task_bytes,
            context_bytes=size.context_bytes,
            prior_work_bytes=size.prior_work_bytes,
            approximate_tokens=size.approximate_tokens,
        ),
    )


def _history(history: History) -> render_pb2.History:
    return render_pb2.History(
        state=_STATES[history.state],
        text=history.text,
        digest=history.digest,
        bytes=history.size,
        shown=history.shown,
        condensed=history.condensed,
        left_out=history.left_out,
        no_longer_kept=history.no_longer_kept,
        unreadable=history.unreadable,
    )
