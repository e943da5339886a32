"""The quick form of the power losses."""

from pathlib import Path

from tests.torture.experiment import QUICK, require_held, silent
from tests.torture.power import EXPERIMENT


async def test_nothing_synced_is_lost_with_the_power(tmp_path: Path) -> None:
    """Losses at random operations lose nothing acknowledged; without syncs they do."""
    require_held(await EXPERIMENT.run(tmp_path, QUICK, silent))
