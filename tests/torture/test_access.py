"""The quick form of who gets in."""

from pathlib import Path

from tests.torture.access import EXPERIMENT
from tests.torture.experiment import QUICK, require_held, silent


async def test_nobody_else_gets_in(tmp_path: Path) -> None:
    """No other user, address, method or key gets at a seat's turns."""
    require_held(await EXPERIMENT.run(tmp_path, QUICK, silent))
