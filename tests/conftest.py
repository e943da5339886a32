"""Fixtures that every folder of tests may use."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sidecar.store.store import Store
from tests.support.faulty_disk import FaultyDisk, faulty_disk
from tests.support.running import Caller, running, settings
from tests.support.stores import open_store


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Where the test's store is."""
    return tmp_path / "store.db"


@pytest.fixture
async def store(store_path: Path) -> AsyncIterator[Store]:
    """An open store of the test's own."""
    async with open_store(store_path) as opened:
        yield opened


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    """A disk that fails when told to."""
    with faulty_disk() as made:
        yield made


@pytest.fixture
async def caller(tmp_path: Path) -> AsyncIterator[Caller]:
    """A caller of a sidecar of the test's own, on a Unix socket."""
    async with running(settings(tmp_path)) as made:
        yield made
