import re
from pathlib import Path

import pytest

from sidecar.domain import text
from tests.torture import fuzz
from tests.torture.experiment import QUICK, require_held, silent


async def test_mutations(tmp_path: Path) -> None:
    """Mutated requests and entries break neither decoding nor the block."""
    require_held(await fuzz.run(tmp_path, QUICK, silent))


async def test_the_fuzzer_finds_what_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line break that quoting overlooks is found."""
    monkeypatch.setattr(text, "_ODD_BREAK", re.compile("[\r\v\f\x1c-\x1e\x85\u2029]"))
    with pytest.raises(AssertionError, match="break neither"):
        require_held(await fuzz.run(tmp_path, QUICK, silent))
