from sidecar.domain.retention import DAY_S, Horizon, Look, TrimBound, look

HOUR_S = 3600
NOW = 1_767_225_600
YEARS_S = 10 * 365 * DAY_S


def test_the_horizon_is_the_retention_before_now() -> None:
    """Rows may go once they are as old as `retention_days`."""
    assert look(NOW, 0.0, 30, HOUR_S) == Look(0.0, NOW - 30 * DAY_S)


def test_no_retention_is_shorter_than_the_interval() -> None:
    """A day of retention with sweeps further apart than that keeps rows for the interval."""
    assert look(NOW, 0.0, 1, 3 * DAY_S).horizon == NOW - 3 * DAY_S


def test_the_first_look_sweeps_nothing() -> None:
    """A process that has just come up, after however many weeks, only looks."""
    assert Horizon(HOUR_S).agreed(look(NOW, 5.0, 30, HOUR_S)) is None


def test_two_looks_an_interval_apart_agree_on_the_older_horizon() -> None:
    """What was past the horizon at both looks may go, and nothing younger."""
    horizon = Horizon(HOUR_S)
    horizon.agreed(Look(0.0, 1000))
    assert horizon.agreed(Look(3600.0, 4600)) == 1000
    assert horizon.agreed(Look(7200.0, 8200)) == 4600


def test_a_look_within_the_interval_does_not_count() -> None:
    """Sweeps that are asked for one after another agree on nothing new."""
    horizon = Horizon(HOUR_S)
    horizon.agreed(Look(0.0, 1000))
    assert horizon.agreed(Look(10.0, 9000)) is None
    assert horizon.agreed(Look(3599.0, 9000)) is None
    assert horizon.agreed(Look(3600.0, 9000)) == 1000
    assert horizon.agreed(Look(3610.0, 9000)) == 9000


def test_a_clock_that_leaps_ahead_and_back_sweeps_nothing_more() -> None:
    """Ten years ahead at one look, put right at the next: only what was old all along goes."""
    horizon = Horizon(HOUR_S)
    horizon.agreed(Look(0.0, 1000))
    assert horizon.agreed(Look(3600.0, 1000 + YEARS_S)) == 1000
    assert horizon.agreed(Look(7200.0, 8200)) == 8200
    assert horizon.agreed(Look(10_800.0, 11_800)) == 8200


def test_a_clock_that_leaps_back_keeps_rows() -> None:
    """Ten years back: nothing goes that would not have gone then."""
    horizon = Horizon(HOUR_S)
    horizon.agreed(Look(0.0, 1000))
    assert horizon.agreed(Look(3600.0, 4600 - YEARS_S)) == 4600 - YEARS_S


def test_looks_do_not_pile_up() -> None:
    """However often a sweep is asked for, what is remembered is bounded by one interval."""
    horizon = Horizon(60)
    for second in range(2_000):
        horizon.agreed(Look(float(second), second))
    assert len(horizon._looks) <= 62


def test_a_lowered_bound_waits_for_the_sweep() -> None:
    """A typo in `max_entries` destroys nothing until the next sweep, and a raised one holds at once."""
    bound = TrimBound(20)
    assert bound.for_a_write(2) == 20
    assert bound.for_a_write(100) == 100
    assert bound.for_a_write(2) == 100
    assert bound.for_a_sweep(2) == 2
    assert bound.for_a_write(2) == 2
