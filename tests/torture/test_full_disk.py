"""The quick form of the full disk."""

import os
from pathlib import Path

import pytest

from tests.torture.experiment import QUICK, require_held, silent
from tests.torture.full_disk import EXPERIMENT


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system is mounted by root alone")
async def test_a_full_disk_forgets(tmp_path: Path) -> None:
    """A disk that is really full refuses turns, reads and forgets."""
    require_held(await EXPERIMENT.run(tmp_path, QUICK, silent))
