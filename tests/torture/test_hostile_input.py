"""The quick form of hostile input."""

from pathlib import Path

from tests.torture.experiment import QUICK, require_held, silent
from tests.torture.hostile_input import EXPERIMENT


async def test_no_input_is_a_bug(tmp_path: Path) -> None:
    """No input is answered as INTERNAL, giants hold up nobody, and memory comes back."""
    require_held(await EXPERIMENT.run(tmp_path, QUICK, silent))
