"""Draws the dashboard's panels from a real run: `python -m tools.dashboard_picture FILE PNG`.

FILE is what `tools.otel_proof --keep FILE` kept.

Grafana draws them more beautifully; this shows what a real run gave. Needs matplotlib, which nothing else here does.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

from tools.dashboard import ROWS, Panel


def main() -> None:
    """Draw all panels on one page."""
    answers: dict[str, list[Any]] = json.loads(Path(sys.argv[1]).read_text())
    panels = [panel for row in ROWS.values() for panel in row]
    figure, places = plt.subplots(-(-len(panels) // 4), 4, figsize=(20, 3.2 * -(-len(panels) // 4)))
    for panel, place in zip(panels, places.flat, strict=True):
        _draw(panel, place, answers)
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=60)


def _draw(panel: Panel, place: Any, answers: dict[str, list[Any]]) -> None:
    place.set_title(f"{panel.title} ({panel.unit})", fontsize=10)
    for legend, query in panel.queries.items():
        for series in answers[query.replace("$instance", ".*").replace("$__rate_interval", "15s")]:
            points = [(float(at), float(value)) for at, value in series["values"] if value != "NaN"]
            if not points:
                continue
            start = points[0][0]
            name = legend
            for label, value in series["metric"].items():
                name = name.replace(f"{{{{{label}}}}}", value)
            name = re.sub(r"{{.*?}}", "", name).strip()[-32:]
            place.plot([at - start for at, _ in points], [value for _, value in points], label=name)
    place.set_ylim(bottom=0)
    place.tick_params(labelsize=7)
    place.legend(fontsize=6, loc="best")


if __name__ == "__main__":
    main()
