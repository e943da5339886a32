from pathlib import Path

from sidecar.config.file import read_settings
from sidecar.config.settings import Settings

_SHIPPED = Path(__file__).parents[2] / "deploy" / "settings.yaml"


def test_the_shipped_file_holds_the_defaults() -> None:
    """The commented example is valid, and says what holds without it."""
    assert read_settings(_SHIPPED) == Settings() == read_settings(None)
