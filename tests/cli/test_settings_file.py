"""The settings file that is shipped."""

from pathlib import Path

from sidecar.config.effective import Origin, effective
from sidecar.config.settings import Settings

_SHIPPED = Path(__file__).parents[2] / "deploy" / "settings.yaml"


def test_the_shipped_file_holds_the_defaults() -> None:
    """The commented example is valid, names every key there is, and says what holds without it."""
    shipped = effective(_SHIPPED, {}, {})
    assert (shipped.problems, shipped.notes) == ((), ())
    assert shipped.settings == Settings() == effective(None, {}, {}).settings
    assert {source.origin for source in shipped.sources.values()} == {Origin.FILE}
