"""The experiments at full scale that take a minute or two; the longer ones are `make torture` alone."""

from pathlib import Path

import pytest

from tests.torture import corruption, faults, file_itself, power, undo
from tests.torture.experiment import Experiment, Scale, require_held, silent

_MINUTES = (corruption.EXPERIMENT, faults.EXPERIMENT, file_itself.EXPERIMENT, power.EXPERIMENT, undo.EXPERIMENT)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", _MINUTES, ids=lambda experiment: experiment.name)
async def test_every_promise_holds(tmp_path: Path, experiment: Experiment) -> None:
    """What was put to the test at full scale held."""
    require_held(await experiment.run(tmp_path, Scale(quick=False, seed=1), silent))
