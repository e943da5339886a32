"""The page about configuration and the settings say the same."""

import re
from pathlib import Path

from sidecar.config.keys import KEYS
from sidecar.config.listen import _SOCKET_PATH_BYTES
from sidecar.config.reloader import LOOK_S, READ_S, SETTLE_S
from sidecar.config.variables import CONFIG_VARIABLE

_PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


def test_table_is_that_of_the_settings() -> None:
    """The table has every key, in order, with what it may be, its default, its variable, and when a change holds."""
    rows = [line for line in _PAGE.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{key.place}` | {key.takes} | {_default(key.default)} | "
        + (f"`{key.variable}` | " if key.variable else "| ")
        + ("at once |" if key.live else "at the next start |")
        for key in KEYS
    ]


def test_each_key_has_its_reason() -> None:
    """Below the table stands what each key is for."""
    for key in KEYS:
        assert f"**`{key.name}`**" in _PAGE


def test_numbers_are_those_of_the_code() -> None:
    """The times and sizes that the page names are those that hold."""
    assert LOOK_S == 0.5
    assert "twice a second" in _PAGE
    assert f"{SETTLE_S} s apart" in _PAGE
    assert f"within {READ_S:.0f} s" in _PAGE
    assert f"at most {_SOCKET_PATH_BYTES} bytes" in " ".join(_PAGE.split())


def test_variables_named_are_those_that_are_read() -> None:
    """The page names no variable that nothing reads, but those that Kubernetes sets."""
    named = set(re.findall(r"TURNLEDGER_[A-Z_]+[A-Z]", _PAGE))
    assert named == {CONFIG_VARIABLE, "TURNLEDGER_PORT", *(key.variable for key in KEYS if key.variable)}


def _default(value: object) -> str:
    return "unset" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"
