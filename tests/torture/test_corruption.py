"""The quick form of the damages."""

from pathlib import Path

from tests.torture.corruption import EXPERIMENT
from tests.torture.experiment import QUICK, require_held, silent


async def test_damage_is_told(tmp_path: Path) -> None:
    """Damage to each part of the files shows no foreign text, no false emptiness and no bug."""
    require_held(await EXPERIMENT.run(tmp_path, QUICK, silent))
