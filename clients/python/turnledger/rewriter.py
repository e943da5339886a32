"""The one callable that an engine gives: from an order to a rewrite. It owns the model, the key and the budget."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from inspect import iscoroutinefunction

from turnledger.order import FillOutcome, Order


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What the model made of an order's text, and what that took."""

    text: str = field(repr=False)
    prompt_tokens: int = 0
    completion_tokens: int = 0


class NoBudget(Exception):
    """Raised by a rewriter: the seat's budget or gate allows no more now. No further order of the batch is run."""


@dataclass(frozen=True, slots=True)
class Unfilled:
    """Why there is no rewrite. `error` is the type of what the rewriter raised; `called`: whether it was called."""

    outcome: FillOutcome
    error: str = ""
    called: bool = True


Rewritten = Rewrite | Unfilled

#: For threads, and for asyncio too, where it runs in a thread.
PlainRewriter = Callable[[Order], Rewrite | str]
AsyncRewriter = Callable[[Order], Awaitable[Rewrite | str]]
Rewriter = PlainRewriter | AsyncRewriter


def is_async(rewriter: object) -> bool:
    """Whether the rewriter is an async function, or an object that is called like one. Raises TypeError for neither."""
    if not callable(rewriter):
        raise TypeError(f"the rewriter must be callable, not {type(rewriter).__name__}")
    return iscoroutinefunction(rewriter) or iscoroutinefunction(type(rewriter).__call__)


def taken(came: object) -> Rewritten:
    """What the rewriter returned, as a rewrite; unfilled by an error where it is none."""
    if isinstance(came, str):
        return Rewrite(came)
    if isinstance(came, Rewrite) and isinstance(came.text, str):
        tokens = (came.prompt_tokens, came.completion_tokens)
        if all(isinstance(count, int) and count >= 0 for count in tokens):
            return came
    return Unfilled(FillOutcome.ERROR, TypeError.__name__)


def refused(error: BaseException) -> Unfilled:
    """What the rewriter raised. Its type alone is kept: its text may quote the prompt."""
    if isinstance(error, NoBudget):
        return Unfilled(FillOutcome.NO_BUDGET)
    return Unfilled(FillOutcome.ERROR, type(error).__name__)
