"""Proves deploy/otel with real programs: `python -m tools.otel_proof`.

A collector built from its own Go modules runs the shipped configuration, a sidecar and an engine export to it, and
Prometheus scrapes it with the shipped rules. Then every query of the dashboard must give data, every metric that a
panel or a rule names must have been exported, and every rule must load. Needs Go, and Prometheus on the path (Debian's
package `prometheus`; as root it is installed). About four minutes with cold Go caches, then half of one.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.running import free_port
from tools.dashboard import ROWS
from tools.debian import program

_TREE: Final = Path(__file__).parents[1]
_OTEL: Final = _TREE / "deploy" / "otel"
_BUILDER: Final = "go.opentelemetry.io/collector/cmd/builder@v0.165.0"

#: Seconds that a program may take to come up, and that all of the data may take to arrive.
_PATIENCE_S: Final = 60.0


def main() -> None:
    """Run it all and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="write Prometheus' answers for the dashboard's queries to this file")
    options = parser.parse_args()
    prometheus = _prometheus()
    collector = _collector()
    with tempfile.TemporaryDirectory(prefix="tl-otel-") as name, ExitStack() as stack:
        folder = Path(name)
        otlp, scrape, web = free_port(), free_port(), free_port()
        variables = {"OTLP_GRPC": f"127.0.0.1:{otlp}", "PROMETHEUS_LISTEN": f"127.0.0.1:{scrape}"}
        stack.enter_context(_running([str(collector), "--config", str(_OTEL / "collector.yaml")], folder, variables))
        stack.enter_context(_running([prometheus, *_prometheus_options(folder, scrape, web)], folder, {}))
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{otlp}", "OTEL_METRIC_EXPORT_INTERVAL": "1000"}
        sidecar = [sys.executable, "-m", "sidecar", "serve", "--store", f"{folder}/store.db"]
        places = {"TURNLEDGER_HEALTH": "127.0.0.1:0", "TURNLEDGER_SWEEP_INTERVAL_S": "5"}
        stack.enter_context(_running([*sidecar, "--listen", f"unix://{folder}/s.sock"], folder, {**endpoint, **places}))
        engine = [sys.executable, "-m", "tools.otel_proof_engine", f"unix:{folder}/s.sock"]
        stack.enter_context(_running(engine, folder, {**endpoint, "OTEL_SERVICE_NAME": "engine"}))
        faults = _judge(web, options.keep)
    for fault in faults:
        print(f"[otel] FAULT: {fault}")
    sys.exit(1 if faults else 0)


def _judge(web: int, keep: Path | None) -> list[str]:
    """Ask until all queries have data; what never had any is a fault."""
    named = {name for text in [query for _, query in _queries()] + _rules() for name in _metrics_in(text)} - _RARE
    until = time.monotonic() + _PATIENCE_S
    while True:
        there = set(_get(web, "label/__name__/values"))
        answers = {query: _ask(web, query) for _, query in _queries()}
        empty = [(title, query) for title, query in _queries() if not answers[query]]
        if not (empty or named - there) or time.monotonic() > until:
            break
        time.sleep(1)
    if keep is not None:
        time.sleep(60)  # a minute of data makes a picture
        keep.write_text(json.dumps({query: _range(web, query) for _, query in _queries()}))
    loaded = [rule for group in _get(web, "rules")["groups"] for rule in group["rules"]]
    print(f"[otel] queries of the dashboard with data: {len(answers) - len(empty)} of {len(answers)}")
    print(f"[otel] metrics that panels and rules name: {len(named)}, exported by this run: {len(named & there)}")
    print(f"[otel] rules loaded and healthy: {sum(rule['health'] == 'ok' for rule in loaded)} of {len(loaded)}")
    faults = [f"no data for {title!r}: {query}" for title, query in empty]
    faults += [f"{name} is named and was not exported" for name in sorted(named - there)]
    faults += [f"rule {rule['name']} is {rule['health']}" for rule in loaded if rule["health"] != "ok"]
    return faults + ([] if len(loaded) == len(_rules()) else [f"{len(_rules()) - len(loaded)} rules did not load"])


#: Only exported once something was dropped.
_RARE: Final = frozenset({"otel_sdk_processor_log_processed_total", "otel_sdk_processor_span_processed_total"})


def _queries() -> Iterator[tuple[str, str]]:
    for panels in ROWS.values():
        for panel in panels:
            for query in panel.queries.values():
                yield panel.title, query.replace("$instance", ".*").replace("$__rate_interval", "15s")


def _rules() -> list[str]:
    text = yaml.safe_load((_OTEL / "alerts.yaml").read_text())
    return [rule["expr"] for group in text["groups"] for rule in group["rules"]]


def _metrics_in(query: str) -> set[str]:
    return set(re.findall(r"\b((?:turnledger|rpc|db|otel)_[a-z_]+)\s*[\[{]", query)) | set(
        re.findall(r"\b(turnledger_disk_[a-z_]+)\b", query)
    )


def _ask(web: int, query: str) -> list[Any]:
    found = _get(web, f"query?query={urllib.parse.quote(query)}")["result"]
    return [each for each in found if each["value"][1] != "NaN"]


def _range(web: int, query: str) -> Any:
    now = time.time()
    return _get(web, f"query_range?query={urllib.parse.quote(query)}&start={now - 90}&end={now}&step=1")["result"]


def _get(web: int, path: str) -> Any:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/api/v1/{path}", timeout=10) as answer:
            return json.load(answer)["data"]
    except OSError:
        return {"result": [], "groups": []}  # not up yet


def _prometheus_options(folder: Path, scrape: int, web: int) -> list[str]:
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "5s"},
        "rule_files": [str(_OTEL / "alerts.yaml")],
        "scrape_configs": [
            {"job_name": "otel", "honor_labels": True, "static_configs": [{"targets": [f"127.0.0.1:{scrape}"]}]}
        ],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(settings))
    return [
        f"--config.file={folder}/prometheus.yaml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{web}",
    ]


@contextmanager
def _running(command: list[str], folder: Path, variables: dict[str, str]) -> Iterator[None]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    log = folder / f"{Path(command[0]).name}-{len(list(folder.iterdir()))}.log"
    path = os.pathsep.join([str(_TREE), str(_TREE / "clients" / "python")])
    with log.open("w") as output:
        process = subprocess.Popen(
            command, env={**inherited, **variables, "PYTHONPATH": path}, cwd=_TREE, stdout=output, stderr=output
        )
    try:
        time.sleep(1)
        if process.poll() is not None:
            sys.exit(f"[otel] {command[0]} ended: {log.read_text()[-2000:]}")
        yield
    finally:
        process.terminate()
        process.wait(20)


def _prometheus() -> str:
    found = program("prometheus", "prometheus")
    if found is None:
        sys.exit("[otel] prometheus is not on the path: install Debian's package `prometheus`")
    return found


def _collector() -> Path:
    """The collector that builder.yaml names, built once for this checkout's environment."""
    tools = _TREE / ".venv" / "go"
    collector = tools / "collector" / "turnledger-collector"
    if collector.exists() and collector.stat().st_mtime > (_OTEL / "builder.yaml").stat().st_mtime:
        return collector
    if shutil.which("go") is None:
        sys.exit("[otel] go is not on the path, and builds the collector: install Go 1.25 or newer")
    began = time.monotonic()
    print("[otel] building the collector from its Go modules: minutes, once")
    environment = {**os.environ, "GOBIN": str(tools / "bin")}
    subprocess.run(["go", "install", _BUILDER], check=True, env=environment)  # noqa: S607
    settings = yaml.safe_load((_OTEL / "builder.yaml").read_text())
    settings["dist"]["output_path"] = str(collector.parent)
    chosen = tools / "builder.yaml"
    chosen.write_text(yaml.safe_dump(settings))
    with (tools / "builder.log").open("w") as log:
        build = [str(tools / "bin" / "builder"), "--config", str(chosen)]
        built = subprocess.run(build, check=False, stdout=log, stderr=log)
    if built.returncode:
        sys.exit(f"[otel] the collector could not be built: {(tools / 'builder.log').read_text()[-2000:]}")
    print(f"[otel] built in {time.monotonic() - began:.0f} s")
    return collector


if __name__ == "__main__":
    main()
