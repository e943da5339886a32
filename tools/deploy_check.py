"""Checks deploy/: `python -m tools.deploy_check`. Prints what it did, and what it could not for want of a tool.

Both Kubernetes examples against the schemas of every supported version, the Dockerfile by hadolint, the alert rules and
their tests by promtool. With CI set, a tool that is missing is a failure.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.debian import program

_TREE: Final = Path(__file__).parents[1]
_DEPLOY: Final = _TREE / "deploy"
_BIN: Final = _TREE / ".venv-deploy" / "bin"

VERSIONS: Final = ("1.29", "1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36")
_EXAMPLES: Final = ("statefulset", "deployment")


class Failed(Exception):
    """A check found something."""


def main() -> None:
    """Run all checks; exit with 1 if one found something."""
    faults = 0
    for check in (_manifests, _dockerfile, _alerts):
        try:
            for line in check():
                print(f"[deploy] {line}")
        except Failed as fault:
            print(f"[deploy] FAULT: {fault}")
            faults += 1
    sys.exit(1 if faults else 0)


def _manifests() -> Iterator[str]:
    kustomize = _kustomize()
    if kustomize is None:
        yield from _missing("kubectl and kustomize")
        return
    with tempfile.TemporaryDirectory() as folder:
        for example in _EXAMPLES:
            rendered = Path(folder) / f"{example}.yaml"
            rendered.write_text(_run([*kustomize, str(_DEPLOY / "kubernetes" / example)]))
            for version in VERSIONS:
                _run([str(_BIN / "kubernetes-validate"), "--strict", "-k", version, str(rendered)])
    yield f"{' and '.join(_EXAMPLES)}: rendered, valid for Kubernetes {', '.join(VERSIONS)}"


def _kustomize() -> list[str] | None:
    """kubectl has it; else kustomize by itself, from its Go module if it must be."""
    if shutil.which("kubectl"):
        return ["kubectl", "kustomize"]
    here = _TREE / ".venv" / "go" / "bin"
    if not (here / "kustomize").exists() and shutil.which("go"):
        install = ["go", "install", "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1"]
        subprocess.run(install, check=False, env={**os.environ, "GOBIN": str(here)})
    return [str(here / "kustomize"), "build"] if (here / "kustomize").exists() else None


def _dockerfile() -> Iterator[str]:
    _run([str(_BIN / "hadolint"), str(_DEPLOY / "Dockerfile")])
    yield "Dockerfile: hadolint finds nothing"


def _alerts() -> Iterator[str]:
    promtool = program("promtool", "prometheus")
    if promtool is None:
        yield from _missing("promtool (Debian's package `prometheus`)")
        return
    _run([promtool, "check", "rules", str(_DEPLOY / "otel" / "alerts.yaml")])
    _run([promtool, "test", "rules", str(_DEPLOY / "otel" / "alerts_test.yaml")])
    yield "alert rules: well formed, and each fires when it should and is silent when it should be"


def _missing(tool: str) -> Iterator[str]:
    if os.environ.get("CI"):
        raise Failed(f"{tool} is missing")
    yield f"NOT DONE: {tool} is missing"


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
