"""The quick form of the writer."""

from pathlib import Path

from tests.torture.experiment import QUICK, require_held, silent
from tests.torture.writer import EXPERIMENT


async def test_maintenance_holds_nobody_up(tmp_path: Path) -> None:
    """Sweep, backup and the moving of the log hold the writer for milliseconds."""
    require_held(await EXPERIMENT.run(tmp_path, QUICK, silent))
