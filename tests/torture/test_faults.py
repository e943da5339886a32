"""The quick form of the faults."""

from pathlib import Path

from tests.torture.experiment import QUICK, require_held, silent
from tests.torture.faults import EXPERIMENT


async def test_a_fault_costs_the_calls_that_meet_it(tmp_path: Path) -> None:
    """Each kind of fault is told by its own status, and everything goes through once the disk is well."""
    require_held(await EXPERIMENT.run(tmp_path, QUICK, silent))
