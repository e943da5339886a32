"""Which value holds, and where it comes from."""

from pathlib import Path
from typing import Any

import pytest

from sidecar.config.effective import Effective, Origin, Source, effective
from sidecar.config.keys import KEYS, Key
from sidecar.domain.errors import Code

#: A value other than the default for each key, as a file has it and as a variable or option has it.
OTHERS: dict[str, tuple[object, str]] = {
    "turn_engine.conversation_session.enabled": (False, ""),
    "turn_engine.conversation_session.max_entries": (7, ""),
    "turn_engine.conversation_session.retention_days": (8, "9"),
    "sidecar.listen": ("127.0.0.1:7001", "unix:///x/y.sock"),
    "sidecar.socket_group": (2000, "engine"),
    "sidecar.health": ("0.0.0.0:7413", "[::]:7414"),
    "sidecar.store": ("/x/a.db", "/x/b.db"),
    "sidecar.limits.concurrent_calls": (3, "4"),
    "sidecar.sweep.interval_s": (60, "61"),
    "sidecar.telemetry.log_level": ("error", "debug"),
    "sidecar.telemetry.log_format": ("text", "json"),
}

WITH_VARIABLE = [key for key in KEYS if key.variable]


def _place(key: Key) -> str:
    return key.place


def written(folder: Path, key: Key, value: object) -> Path:
    """A file that sets one key."""
    *sections, name = key.place.split(".")
    path = folder / "settings.yaml"
    path.write_text(
        "".join(f"{section}: {{" for section in sections) + f"{name}: {value}".lower() + "}" * len(sections)
    )
    return path


def _found(path: Path | None = None, *, listen: str | None = None, **variables: str) -> Effective:
    return effective(path, {"listen": listen, "store": None}, variables)


@pytest.mark.parametrize("key", KEYS, ids=_place)
def test_file_sets_each_key(tmp_path: Path, key: Key) -> None:
    """Every key of the file takes another value than its default, and is said to come from the file."""
    path = written(tmp_path, key, OTHERS[key.place][0])
    got = _found(path)
    assert got.problems == ()
    assert key.of(got.settings) == OTHERS[key.place][0] != key.default
    assert got.sources.pop(key.place) == Source(Origin.FILE, str(path))  # type: ignore[attr-defined]  # a dict
    assert set(got.sources.values()) == {Source(Origin.DEFAULT)}


@pytest.mark.parametrize("key", WITH_VARIABLE, ids=_place)
def test_variable_overrides_the_file(tmp_path: Path, key: Key) -> None:
    """Each key's variable holds over the file, and is named as where the value comes from."""
    in_file, text = OTHERS[key.place]
    got = _found(written(tmp_path, key, in_file), **{str(key.variable): text})
    assert got.problems == ()
    assert str(key.of(got.settings)) == text
    assert got.sources[key.place] == Source(Origin.VARIABLE, str(key.variable))


def test_every_key_that_is_not_live_has_a_variable() -> None:
    """A key is either live, or can be set where there is no file."""
    assert [key.place for key in KEYS if key.live == bool(key.variable)] == []


@pytest.mark.parametrize("option", ["listen", "health", "store"])
def test_option_overrides_all(tmp_path: Path, option: str) -> None:
    """What is typed with a command holds over variable and file."""
    key = next(key for key in KEYS if key.option == option)
    in_file, text = OTHERS[key.place]
    given = f"{text}0" if option == "listen" else text.replace("7414", "7999").replace("b.db", "c.db")
    got = effective(written(tmp_path, key, in_file), {option: given}, {str(key.variable): text})
    assert (key.of(got.settings), got.problems) == (given, ())
    assert str(got.sources[key.place]) == f"option --{option}"


def test_variable_names_the_file(tmp_path: Path) -> None:
    """TURNLEDGER_CONFIG is the file where no option names one."""
    (tmp_path / "a.yaml").write_text("sidecar: {store: /x/a.db}")
    (tmp_path / "b.yaml").write_text("sidecar: {store: /x/b.db}")
    variable = str(tmp_path / "a.yaml")
    assert _found(TURNLEDGER_CONFIG=variable).settings.sidecar.store == "/x/a.db"
    assert _found(tmp_path / "b.yaml", TURNLEDGER_CONFIG=variable).settings.sidecar.store == "/x/b.db"


def test_empty_variable_is_not_set() -> None:
    """A manifest that leaves a variable empty means that it is not set."""
    got = _found(TURNLEDGER_STORE="", TURNLEDGER_CONFIG="", TURNLEDGER_SWEEP_INTERVAL_S="")
    assert (got.problems, got.inputs.path) == ((), None)


def test_foreign_variables_are_never_fatal() -> None:
    """What Kubernetes sets for a Service of the same name is passed over; a likely slip is only pointed out."""
    links = {
        "TURNLEDGER_SERVICE_HOST": "10.0.0.1",
        "TURNLEDGER_SERVICE_PORT_GRPC": "7411",
        "TURNLEDGER_PORT": "tcp://10.0.0.1:7411",
        "TURNLEDGER_PORT_7411_TCP_ADDR": "10.0.0.1",
        "TURNLEDGER_HEALTH_SERVICE_PORT": "7412",
    }
    got = _found(None, **links, TURNLEDGER_LISEN="x", TURNLEDGER_ENABLED="false", TURNLEDGER_OTHER="1")
    assert got.problems == ()
    assert got.settings.turn_engine.conversation_session.enabled
    assert [note.split(" is ")[0] for note in got.notes] == ["TURNLEDGER_ENABLED", "TURNLEDGER_LISEN"]
    assert "TURNLEDGER_LISTEN" in got.notes[1]


@pytest.mark.parametrize(
    ("variable", "text", "telling"),
    [
        ("TURNLEDGER_LISTEN", "0.0.0.0:7411", "sidecar.listen: 0.0.0.0 is not this machine alone"),
        ("TURNLEDGER_HEALTH", "7412", "host:port"),
        ("TURNLEDGER_HEALTH", "fd00::1:7412", "[::]:7412"),
        ("TURNLEDGER_HEALTH", "[127.0.0.1]:7412", "host:port"),
        ("TURNLEDGER_HEALTH", "256.0.0.1:7412", "host:port"),
        ("TURNLEDGER_HEALTH", "127.0.0.1:65536", "host:port"),
        ("TURNLEDGER_STORE", ":memory:", "names no file"),
        ("TURNLEDGER_STORE", "file:/x.db?mode=memory", "names no file"),
        ("TURNLEDGER_STORE", "/x/", "names no file"),
        ("TURNLEDGER_SOCKET_GROUP", "-1", "name or number"),
        ("TURNLEDGER_SOCKET_GROUP", "4294967295", "name or number"),
        ("TURNLEDGER_SOCKET_GROUP", "two words", "name or number"),
        ("TURNLEDGER_LIMITS_CONCURRENT_CALLS", "many", "a whole number from 1 to 100000, and is the text 'many'"),
        ("TURNLEDGER_LIMITS_CONCURRENT_CALLS", "0", "from 1 to 100000"),
        ("TURNLEDGER_SWEEP_INTERVAL_S", "86401", "from 1 to 86400"),
        ("TURNLEDGER_SWEEP_INTERVAL_S", "1.5", "from 1 to 86400"),
        ("TURNLEDGER_RETENTION_DAYS", "0", "from 1 to 36500"),
        ("TURNLEDGER_TELEMETRY_LOG_LEVEL", "loud", "debug, error, info or warning, and is the text 'loud'"),
        ("TURNLEDGER_TELEMETRY_LOG_FORMAT", "xml", "json or text"),
        ("TURNLEDGER_CONFIG", "/missing.yaml", "/missing.yaml: it cannot be read: No such file"),
    ],
)
def test_wrong_variable_is_refused_by_its_name(variable: str, text: str, telling: str) -> None:
    """A variable that cannot be taken is named with what it may be, and the default stands in its place."""
    got = _found(None, **{variable: text})
    assert got.refusal is not None
    assert got.refusal.code is Code.CONFIG_INVALID
    assert got.refusal.message.startswith(variable) or variable == "TURNLEDGER_CONFIG"
    assert telling in got.refusal.message
    assert got.settings == _found().settings


@pytest.mark.parametrize(
    "text", ["127.0.0.1:7412", "0.0.0.0:1", "[::]:7412", "[fe80::1]:80", "localhost:80", "pod-1.x:0"]
)
def test_health_may_be_anywhere(text: str) -> None:
    """Health is served on any interface: kubelet dials the pod's address."""
    assert _found(TURNLEDGER_HEALTH=text).problems == ()


@pytest.mark.parametrize(("raw", "group"), [("2000", 2000), ("'2000'", 2000), ("engine", "engine"), ("", None)])
def test_group_is_a_name_or_a_number(tmp_path: Path, raw: str, group: Any) -> None:
    """A gid is a number also where it stands in quotes."""
    (tmp_path / "s.yaml").write_text(f"sidecar:\n  socket_group: {raw}\n")
    got = _found(tmp_path / "s.yaml")
    assert (got.settings.sidecar.socket_group, got.problems) == (group, ())


def test_two_servers_need_two_ports(tmp_path: Path) -> None:
    """One port for the ledger and for health is refused, since the second could never bind."""
    (tmp_path / "s.yaml").write_text("sidecar: {listen: '127.0.0.1:7412'}")
    refusal = _found(tmp_path / "s.yaml").refusal
    assert refusal is not None
    assert "sidecar.health: port 7412" in refusal.message
    assert _found(tmp_path / "s.yaml", TURNLEDGER_HEALTH="127.0.0.1:7413").problems == ()
    assert _found(listen="127.0.0.1:0", TURNLEDGER_HEALTH="127.0.0.1:0").problems == ()


def test_wrong_file_keeps_what_is_right_in_it(tmp_path: Path) -> None:
    """An engine and kubelet find the sidecar at the addresses of a file that is wrong elsewhere, to be told so."""
    (tmp_path / "s.yaml").write_text("sidecar: {listen: 'unix:///x/y.sock', health: '[::]:1', store: 3, zzz: 1}")
    got = _found(tmp_path / "s.yaml")
    assert len(got.problems) == 2
    assert (got.settings.sidecar.listen, got.settings.sidecar.health) == ("unix:///x/y.sock", "[::]:1")


def test_refusal_fits_a_status(tmp_path: Path) -> None:
    """However much is wrong, what each call is told stays far below what a status may carry."""
    lines = "".join(f"  k{number}{'x' * 500}: 1\n" for number in range(50))
    (tmp_path / "s.yaml").write_text(f"sidecar:\n{lines}")
    got = _found(tmp_path / "s.yaml")
    assert len(got.problems) == 50
    assert got.refusal is not None
    assert "and 45 more" in got.refusal.message
    assert len(got.refusal.message) < 4_000
