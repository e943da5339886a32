"""What a changed file changes in a running process: the rules, without a loop."""

from pathlib import Path

from sidecar.config.effective import Inputs, judge
from sidecar.config.file import Reading
from sidecar.config.live import LiveSettings, Outcome, Reload


class Bench:
    """Live settings, a clock that ticks with each look, and a hand that offers texts."""

    def __init__(self, text: str, **variables: str) -> None:
        self.now = 1_000.0
        self.inputs = Inputs(Path("/etc/s.yaml"), variables=variables)
        self.live = LiveSettings(judge(self.inputs, Reading(text)), lambda: self.now)

    def once(self, text: str = "", trouble: str = "", *, asked: bool = False) -> Reload | None:
        self.now += 1
        return self.live.offer(judge(self.inputs, Reading(text, trouble)), asked=asked)

    def twice(self, text: str = "", trouble: str = "") -> Reload:
        assert self.once(text, trouble) is None
        reload = self.once(text, trouble)
        assert reload is not None
        return reload

    @property
    def session(self) -> tuple[bool, int]:
        session = self.live.session()
        return session.enabled, session.max_entries


def _session(text: str) -> str:
    return f"turn_engine: {{conversation_session: {{{text}}}}}"


def test_live_keys_follow_the_file_both_ways() -> None:
    """The switch and the bound change with the file, back and forth, and each change is told with both values."""
    bench = Bench(_session("enabled: true"))
    reload = bench.twice(_session("enabled: false, max_entries: 3"))
    assert reload.outcome is Outcome.APPLIED
    assert [str(change).rpartition(".")[2] for change in reload.changes] == [
        "enabled true -> false",
        "max_entries 20 -> 3",
    ]
    assert bench.session == (False, 3)
    assert bench.twice(_session("enabled: true")).outcome is Outcome.APPLIED
    assert bench.session == (True, 20)
    assert bench.live.state().counts == {**dict.fromkeys(Outcome, 0), Outcome.APPLIED: 2}


def test_file_seen_once_is_not_believed() -> None:
    """Half of a file that is being written is passed over, though it is valid and would switch the ledger on."""
    bench = Bench(_session("enabled: false"))
    assert bench.once("turn_engine:\n") is None
    assert bench.live.unsettled
    assert bench.session == (False, 20)
    assert bench.twice(_session("enabled: false, max_entries: 3")).outcome is Outcome.APPLIED
    assert bench.session == (False, 3)
    assert not bench.live.unsettled
    assert bench.once(_session("enabled: false, max_entries: 3")) is None


def test_asked_for_counts_at_once_and_is_always_answered() -> None:
    """Who sends SIGHUP has finished writing, and hears back also where nothing changed."""
    bench = Bench(_session("enabled: false"))
    changed = bench.once(_session("enabled: true"), asked=True)
    same = bench.once(_session("enabled: true"), asked=True)
    assert changed is not None
    assert same is not None
    assert (changed.outcome, same.outcome) == (Outcome.APPLIED, Outcome.UNCHANGED)


def test_broken_file_keeps_the_settings_and_says_so() -> None:
    """A wrong or vanished file changes nothing but the state, why and since when, until it is right."""
    bench = Bench(_session("enabled: false"))
    reload = bench.twice(_session("enabled: perhaps"))
    assert reload.outcome is Outcome.BROKEN
    broken = bench.live.state()
    assert (broken.ok, broken.since) == (False, bench.now)
    assert "conversation_session.enabled: must be true or false" in broken.message
    assert bench.session == (False, 20)
    bench.twice(trouble="it cannot be read: No such file or directory")
    gone = bench.live.state()
    assert (gone.ok, gone.since, gone.counts[Outcome.BROKEN]) == (False, broken.since, 2)
    assert "/etc/s.yaml: it cannot be read" in gone.message
    reload = bench.twice(_session("enabled: false"))
    assert (reload.outcome, reload.recovered) == (Outcome.UNCHANGED, True)
    assert (bench.live.state().ok, bench.live.state().since, bench.live.state().message) == (True, bench.now, "")


def test_emptied_file_is_broken_and_a_comment_is_not() -> None:
    """A file that lost its last byte does not flip the switch; the defaults are had by a comment alone."""
    bench = Bench(_session("enabled: false"))
    assert bench.twice(" \n").outcome is Outcome.BROKEN
    assert bench.session == (False, 20)
    assert bench.twice("# the defaults\n").outcome is Outcome.APPLIED
    assert bench.session == (True, 20)


def test_file_that_was_empty_from_the_start_may_be_so_again() -> None:
    """Who started with an empty file goes back to it."""
    bench = Bench("")
    bench.twice(_session("enabled: false"))
    assert bench.twice("").outcome is Outcome.BROKEN
    empty = Bench("")
    reload = empty.once("", asked=True)
    assert reload is not None
    assert reload.outcome is Outcome.UNCHANGED


def test_other_keys_wait_for_a_restart_and_are_told_once() -> None:
    """A key that is read at start keeps its value, is told once for each new value, and never stops a live one."""
    bench = Bench("sidecar: {store: /a.db}")
    reload = bench.twice("sidecar: {store: /b.db}\n" + _session("max_entries: 3"))
    assert reload.outcome is Outcome.APPLIED
    assert [str(change) for change in reload.waiting] == ['sidecar.store "/a.db" -> "/b.db"']
    assert bench.live.current().sidecar.store == "/a.db"
    assert bench.session == (True, 3)
    assert bench.twice("sidecar: {store: /b.db}\n" + _session("max_entries: 4")).waiting == ()
    assert bench.live.state().waiting == ("sidecar.store",)
    assert [change.after for change in bench.twice("sidecar: {store: /c.db}").waiting] == ["/c.db"]
    assert bench.twice("sidecar: {store: /a.db}").waiting == ()
    assert bench.live.state().waiting == ()


def test_overridden_key_waits_for_nothing() -> None:
    """A change in the file that a variable overrides would change nothing at a restart either."""
    bench = Bench("sidecar: {store: /a.db}", TURNLEDGER_STORE="/v.db")
    assert bench.twice("sidecar: {store: /b.db}").waiting == ()


def test_wrong_start_is_corrected_by_the_file() -> None:
    """A process that was started with a wrong file says when it is right, and takes nothing before it starts anew."""
    bench = Bench(_session("enabled: perhaps"))
    state = bench.live.state()
    assert (state.ok, state.corrected) == (False, False)
    assert "enabled" in state.message
    assert bench.twice("").outcome is Outcome.BROKEN
    reload = bench.twice(_session("enabled: false"))
    assert (reload.outcome, reload.changes) == (Outcome.CORRECTED, ())
    assert (bench.live.state().ok, bench.live.state().corrected) == (False, True)
    assert bench.session == (True, 20)
    assert bench.twice("a: b: c").outcome is Outcome.BROKEN
    assert not bench.live.state().corrected


def test_wrong_variable_is_not_corrected_by_the_file() -> None:
    """What is wrong in the environment stays wrong however the file changes."""
    bench = Bench("", TURNLEDGER_STORE=":memory:")
    assert bench.twice("# changed").outcome is Outcome.BROKEN
    assert "TURNLEDGER_STORE" in bench.live.state().message
