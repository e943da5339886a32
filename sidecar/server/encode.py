"""From the domain to proto."""

from collections.abc import Sequence
from typing import Final

from turnledger.v1 import entry_pb2, record_pb2, render_pb2

from sidecar.domain.block import History, HistoryState
from sidecar.domain.eligibility import Disposition, SkipReason
from sidecar.domain.fit import Verdict
from sidecar.domain.instructions import INSTRUCTIONS_VERSION, OrderKind
from sidecar.domain.orders import Order
from sidecar.domain.prompt import PromptSize
from sidecar.services.record import Erasure, FitResult, Forgotten, RecordedTurn
from sidecar.services.render import TurnStart
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

_ORDER_KINDS: Final = {
    OrderKind.ARGUMENT: entry_pb2.ORDER_KIND_ARGUMENT,
    OrderKind.ERROR: entry_pb2.ORDER_KIND_ERROR,
    OrderKind.NOTE: entry_pb2.ORDER_KIND_NOTE,
}

_VERDICTS: Final = {
    Verdict.ACCEPTED: record_pb2.VERDICT_ACCEPTED,
    Verdict.NOT_OPEN: record_pb2.VERDICT_NOT_OPEN,
    Verdict.ORIGINAL_MISMATCH: record_pb2.VERDICT_ORIGINAL_MISMATCH,
    Verdict.TOO_LONG: record_pb2.VERDICT_TOO_LONG,
    Verdict.EMPTY: record_pb2.VERDICT_EMPTY,
    Verdict.ECHO: record_pb2.VERDICT_ECHO,
    Verdict.INVENTED: record_pb2.VERDICT_INVENTED,
    Verdict.INVALID_TEXT: record_pb2.VERDICT_INVALID_TEXT,
}

_STATES: Final = {
    HistoryState.PRESENT: render_pb2.HISTORY_STATE_PRESENT,
    HistoryState.EMPTY: render_pb2.HISTORY_STATE_EMPTY,
    HistoryState.DISABLED: render_pb2.HISTORY_STATE_DISABLED,
}


def appended(answer: RecordedTurn) -> record_pb2.AppendResponse:
    """What became of an Append."""
    return record_pb2.AppendResponse(
        disposition=_DISPOSITIONS[answer.disposition],
        skip_reason=_SKIP_REASONS[answer.skip_reason],
        entry_id=answer.entry_id,
        ordinal=answer.ordinal,
        orders=[_order(order) for order in answer.orders],
    )


def settled(answer: Settled) -> record_pb2.SettleResponse:
    """What became of a Settle."""
    return record_pb2.SettleResponse(outcome=_SETTLE_OUTCOMES[answer.outcome], entry_id=answer.entry_id)


def forgotten(answer: Forgotten) -> record_pb2.ForgetResponse:
    """What a Forget erased."""
    return record_pb2.ForgetResponse(forgotten=answer.forgotten, erasure=_ERASURES[answer.erasure])


def fitted(answers: Sequence[FitResult]) -> record_pb2.FitResponse:
    """What became of each fit."""
    return record_pb2.FitResponse(
        results=[
            record_pb2.FitResult(
                order_id=answer.order_id,
                verdict=_VERDICTS[answer.judgement.verdict],
                over_by_bytes=answer.judgement.over_by,
            )
            for answer in answers
        ]
    )


def turn_start(answer: TurnStart) -> render_pb2.HistoryResponse:
    """A turn's history, and whether it ran before."""
    return render_pb2.HistoryResponse(
        history=_history(answer.history),
        already_recorded=answer.already_recorded,
        orders=[_order(order) for order in answer.orders],
    )


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


def _order(order: Order) -> entry_pb2.Order:
    return entry_pb2.Order(
        order_id=str(order.order_id),
        kind=_ORDER_KINDS[order.order_id.kind],
        text=order.text,
        limit_bytes=order.limit,
        instructions=order.instructions,
        instructions_version=INSTRUCTIONS_VERSION,
        closing=order.closing,
    )
