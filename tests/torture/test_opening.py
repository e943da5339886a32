"""Trouble while the store is opened, in its quick form."""

from pathlib import Path

from tests.torture import opening
from tests.torture.experiment import QUICK, require_held, silent


async def test_a_store_in_trouble_opens_once_that_ends(tmp_path: Path) -> None:
    """A disk that fails while the store is opened is told to callers, and costs no turn."""
    require_held(await opening.EXPERIMENT.run(tmp_path, QUICK, silent))
