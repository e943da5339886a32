"""Writes deploy/otel/dashboard.json, a Grafana dashboard: `python -m tools.dashboard`; `--check`: is it fresh?

Written by a program so that each panel is one line here, and that its layout needs nobody's hand.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).parents[1] / "deploy" / "otel" / "dashboard.json"
_RUNBOOK: Final = "https://github.com/turnledger/turnledger/blob/main/docs/operations.md"
_BY_NODE: Final = 'instance=~"$instance"'
_RATE: Final = "$__rate_interval"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: its queries by legend. `unit` is Grafana's."""

    title: str
    says: str
    unit: str
    queries: dict[str, str]
    stacked: bool = False


def _rate(metric: str, by: str = "", where: str = "", node: str = _BY_NODE) -> str:
    """`node` is empty for what engines export: their instances are not the sidecars'."""
    selector = ", ".join(filter(None, (node, where)))
    return f"sum{f' by ({by})' if by else ''} (rate({metric}{{{selector}}}[{_RATE}]))"


def _quantile(quantile: float, metric: str, by: str = "", where: str = "") -> str:
    return f"histogram_quantile({quantile}, {_rate(metric + '_bucket', ', '.join(filter(None, ('le', by))), where)})"


def _quantiles(metric: str, where: str = "") -> dict[str, str]:
    return {f"p{int(each * 100)}": _quantile(each, metric, where=where) for each in (0.5, 0.95, 0.99)}


_DURATION: Final = "rpc_server_call_duration_seconds"
_METHOD: Final = "rpc_method"

#: Rows of the dashboard, each a line of panels.
ROWS: Final[dict[str, list[Panel]]] = {
    "Traffic": [
        Panel(
            "Calls", "Calls a second by method.", "reqps", {f"{{{{{_METHOD}}}}}": _rate(f"{_DURATION}_count", _METHOD)}
        ),
        Panel(
            "Failed calls",
            "By reason. What each means and what to do: the runbook.",
            "reqps",
            {"{{turnledger_reason}}": _rate(f"{_DURATION}_count", "turnledger_reason", 'turnledger_reason!=""')},
        ),
        Panel(
            "Time of calls, p99",
            "From the request's bytes to the answer's, by method.",
            "s",
            {f"{{{{{_METHOD}}}}}": _quantile(0.99, _DURATION, _METHOD)},
        ),
        Panel(
            "Time of Append",
            "A turn is acknowledged after its commit is on disk.",
            "s",
            _quantiles(_DURATION, 'rpc_method="turnledger.v1.Record/Append"'),
        ),
    ],
    "Turns": [
        Panel(
            "Turns recorded",
            "Appends by disposition: duplicates are redeliveries, and cost nobody an answer.",
            "cps",
            {
                "{{turnledger_disposition}} {{turnledger_skip_reason}}": _rate(
                    "turnledger_appends_total", "turnledger_disposition, turnledger_skip_reason"
                )
            },
            stacked=True,
        ),
        Panel(
            "Turns that began",
            "Histories by state. All disabled: somebody turned the switch.",
            "cps",
            {"{{turnledger_history_state}}": _rate("turnledger_histories_total", "turnledger_history_state")},
            stacked=True,
        ),
        Panel(
            "What became of entries",
            "Entries of the histories: whole, condensed, left out, no longer kept, unreadable.",
            "cps",
            {"{{turnledger_entry_fate}}": _rate("turnledger_history_entries_total", "turnledger_entry_fate")},
            stacked=True,
        ),
        Panel(
            "Failed open, as engines saw it",
            "From the clients' own metrics: turns without a history, rounds composed without the sidecar, writes lost.",
            "cps",
            {
                "no history: {{error_type}}": _rate(
                    "turnledger_client_reads_total", "error_type", 'error_type!=""', node=""
                ),
                "composed by the client: {{error_type}}": _rate(
                    "turnledger_client_messages_total", "error_type", 'turnledger_composer="client"', node=""
                ),
                "not recorded: {{error_type}}": _rate(
                    "turnledger_client_turns_total", "error_type", 'error_type!=""', node=""
                ),
            },
        ),
    ],
    "Prompts": [
        Panel(
            "Size of user messages",
            "Executors' rounds, in bytes of UTF-8.",
            "bytes",
            _quantiles("turnledger_user_message_size_bytes", 'turnledger_phase="execute"'),
        ),
        Panel(
            "With and without the block",
            "Bytes a second of executors' messages: what the ledger adds stands beside what was there before it.",
            "Bps",
            {
                "the block": _rate(
                    "turnledger_user_message_parts_bytes_total",
                    where='turnledger_part="history", turnledger_phase="execute"',
                ),
                "all else": _rate(
                    "turnledger_user_message_parts_bytes_total",
                    where='turnledger_part!="history", turnledger_phase="execute"',
                ),
            },
            stacked=True,
        ),
        Panel(
            "Size of blocks",
            "At most 24 000 bytes and the newest entry.",
            "bytes",
            _quantiles("turnledger_history_size_bytes"),
        ),
        Panel(
            "Orders",
            "Issued by kind, and rewrites by verdict.",
            "cps",
            {
                "issued: {{turnledger_order_kind}}": _rate("turnledger_orders_issued_total", "turnledger_order_kind"),
                "{{turnledger_verdict}}": _rate("turnledger_orders_judged_total", "turnledger_verdict"),
            },
        ),
    ],
    "Store": [
        Panel("Commit", "The sync of the disk included.", "s", _quantiles("db_client_operation_duration_seconds")),
        Panel(
            "Waiting for a thread",
            "The oldest job of each batch, p99, and what waits now.",
            "s",
            {
                "{{turnledger_store_thread}}": _quantile(
                    0.99, "turnledger_store_wait_duration_seconds", "turnledger_store_thread"
                )
            },
        ),
        Panel(
            "Turns in one commit",
            "How many jobs share a batch of the writer's.",
            "short",
            _quantiles("turnledger_store_batch_size", 'turnledger_store_thread="writer"'),
        ),
        Panel(
            "Files",
            "The database, its log, and what of it is free for the next turns.",
            "bytes",
            {
                "{{turnledger_store_part}}": (
                    f"sum by (turnledger_store_part) (turnledger_store_size_bytes{{{_BY_NODE}}})"
                ),
            },
        ),
        Panel(
            "Disk free",
            "Of the volume that holds the store.",
            "bytes",
            {"{{instance}}": f"turnledger_disk_free_bytes{{{_BY_NODE}}}"},
        ),
        Panel(
            "Rows",
            "As of the last sweep.",
            "short",
            {"{{turnledger_row}}": f"sum by (turnledger_row) (turnledger_store_rows{{{_BY_NODE}}})"},
        ),
        Panel(
            "Swept",
            "What sweeps took away, and sweeps by outcome.",
            "cps",
            {
                "{{turnledger_swept}}": _rate("turnledger_swept_total", "turnledger_swept"),
                "sweeps {{turnledger_sweep_outcome}}": _rate("turnledger_sweeps_total", "turnledger_sweep_outcome"),
            },
        ),
        Panel(
            "Components",
            "1 is well. What to do when one is not: the runbook.",
            "short",
            {"{{turnledger_component}}": f"min by (turnledger_component) (turnledger_health_ratio{{{_BY_NODE}}})"},
        ),
    ],
}


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    return {
        "title": "turnledger",
        "uid": "turnledger",
        "description": "The conversation session ledger: traffic, turns, prompts and store of each node.",
        "tags": ["turnledger"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "links": [{"title": "Runbook", "type": "link", "url": _RUNBOOK, "icon": "doc", "targetBlank": True}],
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
                {
                    "name": "instance",
                    "type": "query",
                    "label": "Node",
                    "datasource": {"type": "prometheus", "uid": "${datasource}"},
                    "query": {"query": "label_values(turnledger_health_ratio, instance)", "refId": "instance"},
                    "includeAll": True,
                    "multi": True,
                    "allValue": ".*",
                    "current": {"text": "All", "value": "$__all"},
                    "refresh": 2,
                },
            ]
        },
        "panels": list(_panels()),
    }


def _panels() -> Iterator[dict[str, Any]]:
    number, y = 0, 0
    for title, panels in ROWS.items():
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "gridPos": {"h": 1, "w": 24, "x": 0, "y": y},
            "panels": [],
        }
        y += 1
        for place, panel in enumerate(panels):
            number += 1
            yield _panel(panel, number, x=place % 4 * 6, y=y + place // 4 * 7)
        y += -(-len(panels) // 4) * 7


def _panel(panel: Panel, number: int, *, x: int, y: int) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.says,
        "datasource": source,
        "gridPos": {"h": 7, "w": 6, "x": x, "y": y},
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": {
                    "fillOpacity": 20 if panel.stacked else 0,
                    "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
                },
            },
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + place), "expr": query, "legendFormat": legend, "datasource": source}
            for place, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def main() -> None:
    """Write the page, or say whether it is fresh."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if the page is not fresh")
    text = json.dumps(dashboard(), indent=1) + "\n"
    if parser.parse_args().check:
        sys.exit(
            0 if PAGE.read_text() == text else "deploy/otel/dashboard.json is not fresh: python -m tools.dashboard"
        )
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
