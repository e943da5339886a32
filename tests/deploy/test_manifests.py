"""What is shipped for Kubernetes says what the program takes, and what the docs promise."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sidecar.app.app import GRACE_S
from sidecar.config.effective import effective
from sidecar.config.keys import KEYS

_DEPLOY = Path(__file__).parents[2] / "deploy"
_COMPONENT = _DEPLOY / "kubernetes" / "component"


def _patch() -> dict[str, Any]:
    pod: dict[str, Any] = yaml.safe_load((_COMPONENT / "sidecar.yaml").read_text())["spec"]["template"]["spec"]
    return pod


def _sidecar() -> dict[str, Any]:
    [container] = _patch()["initContainers"]
    found: dict[str, Any] = container
    return found


def test_the_sidecar_is_native_and_confined() -> None:
    """It outlives the engine, is nobody, writes to nothing but its volumes, and can become nothing else."""
    sidecar, context = _sidecar(), _sidecar()["securityContext"]
    assert sidecar["restartPolicy"] == "Always"
    assert context["runAsNonRoot"]
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert "cpu" not in sidecar["resources"]["limits"]
    assert all("subPath" not in mount for mount in sidecar["volumeMounts"])


def test_the_image_runs_as_the_manifests_say() -> None:
    """Dockerfile and manifest name one user, by number."""
    user = _sidecar()["securityContext"]["runAsUser"]
    assert f"USER {user}:{user}" in (_DEPLOY / "Dockerfile").read_text()


def test_probes_ask_the_health_port_for_the_process() -> None:
    """Startup and liveness dial the port that is opened for them; nothing takes a pod out of service for its store."""
    sidecar = _sidecar()
    [health] = [each["value"] for each in sidecar["env"] if each["name"] == "TURNLEDGER_HEALTH"]
    for probe in ("startupProbe", "livenessProbe"):
        assert sidecar[probe]["grpc"] == {"port": int(health.rpartition(":")[2]), "service": "liveness"}
    assert not health.startswith(("127.", "localhost"))
    assert "readinessProbe" not in sidecar


def test_the_variables_are_ours_and_hold() -> None:
    """Each variable is one that the program knows, and together with the settings nothing is wrong."""
    named = {each["name"]: each["value"] for each in _sidecar()["env"] if each["name"].startswith("TURNLEDGER_")}
    config = named.pop("TURNLEDGER_CONFIG")
    assert named.keys() <= {key.variable for key in KEYS}
    found = effective(_COMPONENT / "settings.yaml", {}, named)
    assert (found.problems, found.notes) == ((), ())
    mounts = {mount["name"]: mount["mountPath"] for mount in _sidecar()["volumeMounts"]}
    assert config.startswith(mounts["turnledger-config"] + "/")
    assert found.settings.sidecar.store.startswith(mounts["turnledger-store"] + "/")
    assert mounts["turnledger-socket"] + "/" in found.settings.sidecar.listen


@pytest.mark.parametrize("example", ["statefulset", "deployment"])
def test_an_example_gives_the_engine_its_way_in(example: str) -> None:
    """The engine mounts the socket's volume alone, and the pod has time for both to end."""
    documents = yaml.safe_load_all((_DEPLOY / "kubernetes" / example / "engine.yaml").read_text())
    [workload] = [each for each in documents if each["kind"] in ("StatefulSet", "Deployment")]
    assert workload["metadata"]["labels"]["turnledger"] == "sidecar"
    pod = workload["spec"]["template"]["spec"]
    [engine] = pod["containers"]
    assert [mount["name"] for mount in engine["volumeMounts"]] == ["turnledger-socket"]
    assert pod["terminationGracePeriodSeconds"] > GRACE_S + 15


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl renders them, and is not here")
@pytest.mark.parametrize("example", ["statefulset", "deployment"])
def test_an_example_renders_with_the_sidecar(example: str) -> None:
    """The component finds its workload, adds the sidecar, and the store's volume is there once."""
    rendered = subprocess.run(
        ["kubectl", "kustomize", str(_DEPLOY / "kubernetes" / example)],  # noqa: S607  wherever it is
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    documents = list(yaml.safe_load_all(rendered))
    [workload] = [each for each in documents if each["kind"] in ("StatefulSet", "Deployment")]
    pod = workload["spec"]["template"]["spec"]
    assert [each["name"] for each in pod["initContainers"]] == ["turnledger"]
    volumes = [each["name"] for each in pod["volumes"]]
    claims = [each["metadata"]["name"] for each in workload["spec"].get("volumeClaimTemplates", ())]
    assert sorted([*volumes, *claims]) == ["turnledger-config", "turnledger-socket", "turnledger-store"]
    [settings] = [each for each in documents if each["kind"] == "ConfigMap"]
    assert settings["metadata"]["name"] == "turnledger"
