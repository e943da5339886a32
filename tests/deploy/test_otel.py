"""Dashboard and alerts name what is documented, and each alert has its place in the runbook."""

import re
from pathlib import Path
from typing import Any

import yaml

from tests.telemetry import table
from tools import dashboard

_TREE = Path(__file__).parents[2]
_OTEL = _TREE / "deploy" / "otel"

#: How Prometheus spells a unit; `{things}` have none.
_UNITS = {"s": "_seconds", "By": "_bytes", "1": "_ratio"}


def _rules() -> list[dict[str, Any]]:
    text = yaml.safe_load((_OTEL / "alerts.yaml").read_text())
    return [rule for group in text["groups"] for rule in group["rules"]]


def _documented() -> set[str]:
    """The names that Prometheus gives to what docs/telemetry.md lists."""
    found = {"otel_sdk_processor_span_processed_total", "otel_sdk_processor_log_processed_total"}
    for title in ("Metrics", "Client"):
        for cells in table.rows(title):
            if len(cells) < 4:
                continue
            base = cells[0].strip("`").replace(".", "_") + _UNITS.get(cells[2], "")
            suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_count", "_sum"]}[cells[1]]
            found |= {base + suffix for suffix in suffixes}
    return found


def _named(query: str) -> set[str]:
    """The metrics of a query: its words that are no function, no label and no keyword."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|(?:by|without) \([^)]*\)", "", query)
    return set(re.findall(r"\b(?:turnledger|rpc|db|otel)_[a-z_]+\b", bare))


def test_the_dashboard_is_fresh() -> None:
    """deploy/otel/dashboard.json is what its program writes."""
    assert dashboard.PAGE.read_text().rstrip("\n").startswith('{\n "title": "turnledger"')
    assert yaml.safe_load(dashboard.PAGE.read_text()) == dashboard.dashboard()


def test_every_panel_and_rule_names_what_is_documented() -> None:
    """No query asks for a metric that docs/telemetry.md does not list."""
    queries = [query for row in dashboard.ROWS.values() for panel in row for query in panel.queries.values()]
    named = {name for query in [*queries, *(rule["expr"] for rule in _rules())] for name in _named(query)}
    assert len(named) > 15
    assert named <= _documented()


def test_every_alert_is_in_the_runbook() -> None:
    """Each rule links to a heading of docs/operations.md that is there, has a severity, and is tried by promtool."""
    runbook = (_TREE / "docs" / "operations.md").read_text()
    tried = (_OTEL / "alerts_test.yaml").read_text()
    for rule in _rules():
        assert f"\n### {rule['alert']}\n" in runbook
        assert rule["annotations"]["runbook_url"] == f"docs/operations.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert tried.count(f"alertname: {rule['alert']}\n") >= 2
    headings = set(re.findall(r"^### (Turnledger\w+)$", runbook, re.MULTILINE))
    assert headings == {rule["alert"] for rule in _rules()}


def test_every_status_and_exit_code_is_in_the_runbook() -> None:
    """The person on call finds each reason and each exit code."""
    from sidecar.cli.exits import Exit
    from sidecar.domain.errors import Code

    runbook = (_TREE / "docs" / "operations.md").read_text()
    for code in Code:
        assert f"| `{code}` |" in runbook
    for exit_code in Exit:
        assert f"\n| {exit_code.value} |" in runbook
