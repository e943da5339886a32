"""`turnledger config`, as a person and as a script use it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sidecar.cli.main import main
from sidecar.config.keys import KEYS


def _run(*arguments: str, **variables: str | None) -> Result:
    clean: dict[str, str | None] = {str(key.variable): None for key in KEYS if key.variable}
    return CliRunner().invoke(main, ["config", *arguments], env={**clean, "TURNLEDGER_CONFIG": None, **variables})


def test_table_says_what_holds_and_why(tmp_path: Path) -> None:
    """Each key has its line with value, where it comes from, and whether a change is taken live; the exit code is 0."""
    (tmp_path / "s.yaml").write_text("turn_engine: {conversation_session: {enabled: false}}")
    result = _run("--config", str(tmp_path / "s.yaml"), "--store", "/x/y.db", TURNLEDGER_HEALTH="[::]:7412")
    assert result.exit_code == 0
    lines = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
    assert list(lines) == ["KEY", *(key.place for key in KEYS)]
    assert lines["turn_engine.conversation_session.enabled"] == ["false", "live", "file", str(tmp_path / "s.yaml")]
    assert lines["sidecar.health"] == ["[::]:7412", "at", "start", "variable", "TURNLEDGER_HEALTH"]
    assert lines["sidecar.store"] == ["/x/y.db", "at", "start", "option", "--store"]
    assert lines["sidecar.sweep.interval_s"] == ["3600", "at", "start", "default"]


@pytest.mark.parametrize("as_json", [False, True])
def test_wrong_file_is_exit_code_1(tmp_path: Path, *, as_json: bool) -> None:
    """For a pipeline: a wrong file is told in full on stderr, and the exit code is 1 in either form."""
    (tmp_path / "s.yaml").write_text("sidecar:\n  lisen: x\n  limits: {concurrent_calls: 0}\n")
    result = _run("--config", str(tmp_path / "s.yaml"), *(["--json"] if as_json else []))
    assert result.exit_code == 1
    assert "line 2: sidecar.lisen: unknown key; did you mean listen?" in result.stderr
    assert "line 3: sidecar.limits.concurrent_calls: must be a whole number from 1 to 100000, and is 0" in result.stderr
    if as_json:
        document = json.loads(result.stdout)
        assert (document["ok"], len(document["problems"])) == (False, 2)


def test_json_is_for_scripts(tmp_path: Path) -> None:
    """The JSON has every key with its value, source and variable."""
    document = json.loads(_run("--json", "--store", str(tmp_path / "s.db"), TURNLEDGER_LISEN="x").stdout)
    assert document["ok"]
    assert ["TURNLEDGER_LISEN" in note for note in document["notes"]].count(True) == 1
    by_key = {setting["key"]: setting for setting in document["settings"]}
    assert list(by_key) == [key.place for key in KEYS]
    assert by_key["sidecar.store"] == {
        "key": "sidecar.store",
        "value": str(tmp_path / "s.db"),
        "source": "option",
        "name": "--store",
        "takes": "the path of a file on local storage, such as /var/lib/turnledger/store.db",
        "live": False,
        "variable": "TURNLEDGER_STORE",
        "option": "--store",
    }
    assert not (tmp_path / "s.db").exists()
