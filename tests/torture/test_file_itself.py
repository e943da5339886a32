"""The quick form of what happens to the file."""

from pathlib import Path

from tests.torture.experiment import QUICK, require_held, silent
from tests.torture.file_itself import EXPERIMENT


async def test_a_missing_file_is_noticed(tmp_path: Path) -> None:
    """A store's file that is taken away, replaced or hangs is noticed, and refuses by name."""
    require_held(await EXPERIMENT.run(tmp_path, QUICK, silent))
