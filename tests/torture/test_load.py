"""The quick form of the load."""

from pathlib import Path

from tests.torture.experiment import QUICK, require_held, silent
from tests.torture.load import EXPERIMENT


async def test_load_is_shed_and_leaks_nothing(tmp_path: Path) -> None:
    """What is too much is shed, and rude clients cost nobody a turn."""
    require_held(await EXPERIMENT.run(tmp_path, QUICK, silent))
