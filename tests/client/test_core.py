"""The rules of a turn without a sidecar, on a virtual clock: deadlines, retries, patience."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from turnledger import Deadlines, Failure, Phase, Reply, RunEnd, SeatScope
from turnledger.answers import Disposition, Settlement
from turnledger.asking import Asker
from turnledger.core import Core, Ending, Round
from turnledger.deadlines import FULL_WAIT_EVERY_SECONDS, STRAINED_MESSAGE_SECONDS, Patience
from turnledger.failure import DEADLINE_EXCEEDED, UNREACHABLE
from turnledger.reporter import Reporter
from turnledger.retry import LONGEST_WAIT_SECONDS, as_the_contract_allows, wait_seconds, while_it_answers
from turnledger.saved import SavedTurn
from turnledger.steps import AppendAnswer, AskAppend, MessageAnswer, Rpc, Sleep, Steps, TurnKeys

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KEYS = TurnKeys("support", "jira:POC-7", "run-00000001", "w")
HUNG = Failure("DEADLINE_EXCEEDED", DEADLINE_EXCEEDED)
DOWN = Failure("UNAVAILABLE", UNREACHABLE)
BUSY = Failure("UNAVAILABLE", "STORE_UNAVAILABLE", retry_after=0.3)
FULL_DISK = Failure("RESOURCE_EXHAUSTED", "STORE_FULL")
DONE = AppendAnswer(Disposition.RECORDED, None, "e", 1)


class World:
    """A core whose time is virtual: each call takes as long as its outcome says, each wait exactly its seconds."""

    def __init__(self, deadlines: Deadlines = Deadlines(), chance: float = 0.5) -> None:  # noqa: B008  frozen
        self.now = 1000.0
        self.calls: list[Rpc] = []
        self.waits: list[float] = []
        self.reporter = Reporter(None)
        patience = Patience(deadlines.user_message)
        counters = self.reporter.counters
        self.core = Core(
            Asker(deadlines, patience, counters, lambda: self.now, lambda: NOW, lambda: chance), self.reporter
        )

    def run(self, steps: Steps[Any], respond: Callable[[Rpc], Any], seconds: float = 0.0) -> Any:
        """Carry the steps out. A hung call takes its timeout, every other `seconds` or its timeout."""
        came = None
        try:
            while True:
                step = steps.send(came)
                if isinstance(step, Sleep):
                    self.waits.append(step.seconds)
                    self.now += step.seconds
                    came = None
                    continue
                assert isinstance(step, Rpc)
                self.calls.append(step)
                came = respond(step)
                taken = step.timeout if came is HUNG else min(seconds, step.timeout)
                came = HUNG if taken == step.timeout else came
                self.now += taken
        except StopIteration as end:
            return end.value

    def turn(self) -> Any:
        """A turn that needed no sidecar to begin."""
        return self.core.state(SavedTurn(KEYS, None, DOWN, False, {}, ()))


def an_ending(**changed: Any) -> Ending:
    """What an engine gives for a completed turn."""
    return Ending(**{**dict.fromkeys(["intent", "completed_work", "blocked_on"], ""), **ENDING, **changed})


ENDING: dict[str, Any] = {"outcome": Reply("r"), "trigger": "T", "decision": "done", "completed_at": None}
A_ROUND = Round(Phase.EXECUTE, "t", "", "", None, None, None)


@given(
    st.lists(st.sampled_from([HUNG, DOWN, BUSY]), min_size=1, max_size=40),
    st.floats(0, 20),
    st.floats(0.001, 20),
    st.floats(0, 0.999),
)
def test_no_write_outlasts_its_deadline(
    outcomes: list[Failure], seconds: float, deadline: float, chance: float
) -> None:
    """Whatever comes of the tries and however long each takes, they end within the one deadline."""
    world = World(Deadlines(complete=deadline), chance)
    rest = iter(outcomes)
    receipt = world.run(world.core.complete(world.turn(), an_ending()), lambda _: next(rest, DOWN), seconds)
    assert world.now - 1000 <= deadline + 1e-6
    assert receipt.failure is not None
    assert receipt.attempts == len(world.calls)


@pytest.mark.parametrize("final", [FULL_DISK, Failure("INTERNAL", "INTERNAL"), Failure("CANCELLED", "CLOSED")])
def test_what_the_contract_calls_final_is_final(final: Failure) -> None:
    """One try, no wait."""
    world = World()
    receipt = world.run(world.core.complete(world.turn(), an_ending()), lambda _: final)
    assert (receipt.failure, receipt.attempts, world.waits) == (final, 1, [])


def test_a_write_to_a_sidecar_that_is_down_is_tried_until_the_deadline() -> None:
    """Waits double up to a second, and the last try stands near the end: a restart in between is not missed."""
    world = World()
    receipt = world.run(world.core.complete(world.turn(), an_ending()), lambda _: DOWN)
    assert receipt.failure == DOWN
    assert world.waits[:3] == pytest.approx([0.0375, 0.075, 0.15])
    assert max(world.waits) == pytest.approx(0.75)
    assert world.now - 1000 > 9
    assert world.reporter.counters.snapshot().retries == len(world.calls) - 1


def test_a_begin_where_nobody_is_does_not_wait() -> None:
    """A person waits for the turn: an address where nobody listens is tried once, a busy sidecar within two seconds."""
    world = World()
    opening = world.run(world.core.begin(KEYS, 0), lambda _: DOWN)
    assert (opening.read_failure, len(world.calls), world.now) == (DOWN, 1, 1000)
    busy = World()
    opening = busy.run(busy.core.begin(KEYS, 0), lambda _: BUSY)
    assert opening.read_failure == BUSY
    assert len(busy.calls) > 2
    assert 1 < busy.now - 1000 <= 2


def test_a_try_that_time_cut_short_does_not_hide_why() -> None:
    """What the sidecar said stands when only the rest of the deadline ran out on the last try."""
    world = World(Deadlines(complete=1.0))
    outcomes = iter([BUSY, BUSY, HUNG])
    receipt = world.run(world.core.complete(world.turn(), an_ending()), lambda _: next(outcomes))
    assert (receipt.failure, receipt.attempts) == (BUSY, 3)
    long = World()
    outcomes = iter([BUSY, HUNG])
    assert long.run(long.core.complete(long.turn(), an_ending()), lambda _: next(outcomes)).failure == HUNG


def test_the_same_bytes_are_sent_on_every_try() -> None:
    """A retry repeats the request, its time of completion too, so that a lost answer makes a duplicate."""
    world = World()
    outcomes = iter([DOWN, BUSY, DONE])
    assert world.run(world.core.complete(world.turn(), an_ending()), lambda _: next(outcomes)).in_ledger
    assert len({id(call.request) for call in world.calls}) == 1
    (request, *_) = (call.request for call in world.calls)
    assert isinstance(request, AskAppend)
    assert request.entry is not None
    assert request.entry.completed_at == NOW


def test_completed_at_is_utc_and_must_have_a_zone() -> None:
    """Any zone is taken and sent as the same instant; a time without one is a ValueError, before anything is sent."""
    world = World()
    local = datetime(2026, 1, 2, 4, 4, 5, tzinfo=timezone(timedelta(hours=1)))
    world.run(world.core.complete(world.turn(), an_ending(completed_at=local)), lambda _: DONE)
    request = world.calls[0].request
    assert isinstance(request, AskAppend)
    assert request.entry is not None
    assert request.entry.completed_at.isoformat() == "2026-01-02T03:04:05+00:00"
    with pytest.raises(ValueError, match="time zone"):
        world.run(world.core.complete(world.turn(), an_ending(completed_at=datetime(2026, 1, 2))), lambda _: DONE)  # noqa: DTZ001
    assert len(world.calls) == 1


def messages(world: World, respond: Callable[[Rpc], Any], rounds: int, seconds: float = 0.0) -> float:
    """Plays rounds of one turn; how long they took."""
    began = world.now
    turn = world.turn()
    for _ in range(rounds):
        world.run(world.core.user_message(turn, A_ROUND), respond, seconds)
    return world.now - began


def test_thirty_hung_rounds_cost_one_full_wait() -> None:
    """The first round waits its deadline, each other a twentieth of a second."""
    assert messages(World(), lambda _: HUNG, 30) == pytest.approx(0.5 + 29 * STRAINED_MESSAGE_SECONDS)


def test_a_failed_read_spares_the_rounds() -> None:
    """What begin learned about a hung sidecar is known to the first round already."""
    world = World()
    world.run(world.core.begin(KEYS, 0), lambda _: HUNG)
    assert messages(world, lambda _: HUNG, 1) == pytest.approx(STRAINED_MESSAGE_SECONDS)


@pytest.mark.parametrize("failure", [FULL_DISK, Failure("UNAVAILABLE", "STORE_UNAVAILABLE")])
def test_an_answer_of_any_kind_brings_patience_back(failure: Failure) -> None:
    """A sidecar that answers, if only with an error, is not hung."""
    world = World()
    messages(world, lambda _: HUNG, 2)
    messages(world, lambda _: failure, 1)
    assert messages(world, lambda _: HUNG, 1) == pytest.approx(0.5)


@pytest.mark.parametrize("failure", [Failure("RESOURCE_EXHAUSTED", "TOO_LARGE"), Failure("CANCELLED", "CLOSED")])
def test_what_never_left_says_nothing_about_the_sidecar(failure: Failure) -> None:
    """A message that was not sent neither brings patience back nor takes it."""
    world = World()
    messages(world, lambda _: failure, 1)
    assert messages(world, lambda _: HUNG, 1) == pytest.approx(0.5)
    messages(world, lambda _: failure, 1)
    assert messages(world, lambda _: HUNG, 1) == pytest.approx(STRAINED_MESSAGE_SECONDS)


def test_a_sidecar_that_became_slow_is_found_to_be_back() -> None:
    """One that needs longer than the brief wait gets a full one twice a minute, and its answer ends the strain."""
    world = World()
    messages(world, lambda _: HUNG, 2)
    world.now += FULL_WAIT_EVERY_SECONDS
    assert messages(world, lambda _: MessageAnswer("## Task\n\nt"), 1, seconds=0.2) == pytest.approx(0.2)
    assert messages(world, lambda _: HUNG, 1) == pytest.approx(0.5)


def test_a_hung_sidecar_costs_a_full_wait_no_more_than_twice_a_minute() -> None:
    """Of rounds every second over five minutes, eleven at most wait in full."""
    world = World()
    full = 0
    for _ in range(300):
        world.now += 1
        full += messages(world, lambda _: HUNG, 1) > STRAINED_MESSAGE_SECONDS + 0.01
    assert 2 <= full <= 11


@given(st.integers(1, 500), st.floats(0, 0.999), st.none() | st.floats(-1, 1e9))
def test_waits_have_bounds(attempt: int, chance: float, retry_after: float | None) -> None:
    """A wait is never below the sidecar's own time, nor over half as much again, and else a second at most."""
    wait = wait_seconds(Failure("UNAVAILABLE", "x", retry_after=retry_after), attempt, lambda: chance)
    if retry_after is not None and retry_after > 0:
        assert retry_after <= wait <= retry_after * 1.5
    else:
        assert 0.02 < wait <= LONGEST_WAIT_SECONDS


def test_only_reads_give_up_on_an_empty_address() -> None:
    """The two rules differ in that alone."""
    for failure in (HUNG, BUSY, FULL_DISK, Failure("RESOURCE_EXHAUSTED", "OVERLOADED")):
        assert as_the_contract_allows(failure) is while_it_answers(failure)
    assert as_the_contract_allows(DOWN)
    assert not while_it_answers(DOWN)


def test_settle_and_forget_are_tried_again_too() -> None:
    """Both are idempotent, and follow the rule of writes."""
    world = World()
    outcomes = iter([BUSY, Settlement(entry_id="e")])
    assert world.run(world.core.settle("s", "c", "w"), lambda _: next(outcomes)).attempts == 2
    outcomes = iter([FULL_DISK])
    with pytest.raises(Exception, match="STORE_FULL"):
        world.run(world.core.forget(SeatScope("s")), lambda _: next(outcomes))


def test_a_run_end_is_tried_once() -> None:
    """Nothing is recorded for a run that crashed, so nobody waits for it."""
    world = World()
    receipt = world.run(world.core.interrupt(world.turn(), RunEnd.CRASHED), lambda _: BUSY)
    assert (receipt.attempts, world.waits, world.calls[0].timeout) == (1, [], 0.5)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["begin", "user_message", "complete", "run_end", "settle", "forget"])
def test_a_deadline_is_a_finite_time(name: str, seconds: float) -> None:
    """A deadline that would never fire, or always, is a ValueError."""
    with pytest.raises(ValueError, match=name):
        Deadlines(**{name: seconds})


MISTAKES: list[tuple[type[Exception], str, Callable[[World, Any], Any]]] = [
    (TypeError, "work_key", lambda w, _: w.core.begin(TurnKeys("s", "c", "t", None), 0)),  # type: ignore[arg-type]
    (ValueError, "hard_limit_bytes", lambda w, _: w.core.begin(KEYS, -1)),
    (TypeError, "task", lambda w, t: w.core.user_message(t, Round(Phase.EXECUTE, None, "", "", None, None, None))),  # type: ignore[arg-type]
    (ValueError, "planning", lambda w, t: w.core.user_message(t, Round("planning", "t", "", "", None, None, None))),  # type: ignore[arg-type]
    (ValueError, "iteration", lambda w, t: w.core.user_message(t, Round(Phase.EXECUTE, "t", "", "", 0, None, None))),
    (ValueError, "tool_bytes", lambda w, t: w.core.user_message(t, Round(Phase.EXECUTE, "t", "", "", 1, None, -1))),
    (TypeError, "outcome", lambda w, t: w.core.complete(t, an_ending(outcome="done"))),
    (TypeError, "scope", lambda w, _: w.core.forget("everything")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("error", "named", "mistake"), MISTAKES)
def test_mistakes_are_raised_before_anything_is_sent(
    error: type[Exception], named: str, mistake: Callable[[World, Any], Any]
) -> None:
    """A wrong type or number is the engine's own mistake: it is named, and no call is made for it."""
    world = World()
    with pytest.raises(error, match=named):
        world.run(mistake(world, world.turn()), lambda _: DONE)
    assert world.calls == []


def test_mistakes_with_calls_are_raised() -> None:
    """A parsed argument object and a lone name in place of several are refused where the call is collected."""
    turn = World().turn()
    with pytest.raises(TypeError, match=r"entry.calls\[0\].arguments"):
        turn.add_call("x", {"a": 1}, "write", None, ())
    with pytest.raises(TypeError, match="sensitive"):
        turn.add_call("x", "{}", "write", None, "password")
    assert turn.calls == ()


def test_a_hook_that_would_have_to_be_awaited_is_refused() -> None:
    """An async hook would never run, so it is a TypeError at once."""

    async def hook(_event: object) -> None: ...

    with pytest.raises(TypeError, match="on_event"):
        Reporter(hook)
