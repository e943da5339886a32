"""The quick form of undoing."""

from pathlib import Path

from tests.torture.experiment import QUICK, require_held, silent
from tests.torture.undo import EXPERIMENT


async def test_what_is_undone_is_undone(tmp_path: Path) -> None:
    """Upgrades and backups answer the same bytes, and forgotten text is gone."""
    require_held(await EXPERIMENT.run(tmp_path, QUICK, silent))
