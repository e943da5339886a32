"""A bad call or a fault in a shared commit, in its quick form."""

from pathlib import Path

from tests.torture import shared_commit
from tests.torture.experiment import QUICK, require_held, silent


async def test_a_bad_call_costs_its_neighbours_nothing(tmp_path: Path) -> None:
    """Calls that share a commit each have their own answer."""
    require_held(await shared_commit.EXPERIMENT.run(tmp_path, QUICK, silent))
