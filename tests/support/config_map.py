"""A mounted ConfigMap, updated the way kubelet does it."""

import itertools
import shutil
from pathlib import Path


class ConfigMap:
    """A folder whose files are links into `..data`, itself a link to a dated folder: an update swaps that one link."""

    def __init__(self, folder: Path, text: str, name: str = "settings.yaml") -> None:
        self._folder = folder
        self._name = name
        self._versions = itertools.count(1)
        folder.mkdir()
        self.path = folder / name
        self.path.symlink_to(Path("..data") / name)
        self.update(text)

    def update(self, text: str | None) -> None:
        """Swap in a new version; None is one that lacks the file."""
        data = self._folder / "..data"
        old = data.resolve() if data.exists() else None
        fresh = self._folder / f"..2026_12_01_00_00_00.{next(self._versions)}"
        fresh.mkdir()
        if text is not None:
            (fresh / self._name).write_text(text)
        swap = self._folder / "..data_tmp"
        swap.symlink_to(fresh.name)
        swap.rename(data)
        if old is not None:
            shutil.rmtree(old)
