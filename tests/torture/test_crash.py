"""The quick form of the crashes."""

from pathlib import Path

from tests.torture.crash import EXPERIMENT
from tests.torture.experiment import QUICK, require_held, silent


async def test_nothing_acknowledged_is_lost_by_a_kill(tmp_path: Path) -> None:
    """A few kills with calls in flight lose nothing, double nothing and leave nothing half there."""
    require_held(await EXPERIMENT.run(tmp_path, QUICK, silent))
