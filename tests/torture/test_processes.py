"""The quick form of other processes."""

from pathlib import Path

from tests.torture.experiment import QUICK, require_held, silent
from tests.torture.processes import EXPERIMENT


async def test_others_do_no_harm(tmp_path: Path) -> None:
    """Second sidecars, leftovers, foreign programs and leaping clocks do no harm."""
    require_held(await EXPERIMENT.run(tmp_path, QUICK, silent))
