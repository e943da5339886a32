from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.engine.ledger_process import sidecar_in


@pytest.fixture(scope="session")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a sidecar process. Tests share it and not their seats, so none sees another's turns."""
    with sidecar_in(tmp_path_factory.mktemp("ledger")) as address:
        yield address


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the engine keeps its files, from one of its processes to the next."""
    made = tmp_path / "engine"
    made.mkdir()
    return made
