"""The operator of deploy/notebooks as shipped, with only its own Roles, running notebooks in Pods.

The sandbox simulates the kubelet: the commands of the Deployment and of every validation Pod run as processes.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import argosy
from argosy.kube.objects import dump_yaml, read_yaml_documents
from support.clusters import KUBECTL, Finished, Sandbox, kubectl, sandbox
from support.deadlines import HANG_SECONDS, wait_until
from support.git_server import GitHost, git_host
from support.notebook_jobs import Repository, notebook

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.skipif(not KUBECTL.exists(), reason="there is no kubectl here (make install)"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes: volumes are mounted on Linux only"),
]
SHIPPED = Path(__file__).parents[2] / "deploy" / "notebooks"
SYSTEM = "jupyter-notebook-validator-system"
OPERATOR = "jupyter-notebook-validator-operator-controller-manager"
AS_PROCESS = {"sandbox.argosy.dev/run": "process", "sandbox.argosy.dev/network": "on"}
PYTHON = {"name": "PATH", "value": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
TRAIN = "import pathlib\npathlib.Path('/mnt/models/model').write_text(str(rate))\nprint('rate', rate, WHO)"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    new_repository = Repository(tmp_path_factory.mktemp("hosted") / "notebooks.git")
    new_repository.commit({
        "train.ipynb": notebook(("rate = 1", ["parameters"]), "import os\nWHO = os.environ['WHO']", TRAIN),
        "broken.ipynb": notebook("print('before')", "1 / 0", "print('after')"),
        "long.ipynb": notebook("print('begun')", "import time\ntime.sleep(300)"),
    })  # fmt: skip
    return new_repository


@pytest.fixture(scope="module")
def host(repository: Repository) -> Iterator[GitHost]:
    with git_host(repository.folder.parent) as opened_host:
        opened_host.wanted = "Basic " + base64.b64encode(b"robot:s3cret-word").decode()
        yield opened_host


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, host: GitHost) -> Iterator[Sandbox]:
    folder = tmp_path_factory.mktemp("operator")
    with sandbox(folder / "data", "--port", "0", "--rbac", "--addons", "simulators") as running_sandbox:
        for namespace in ("argocd", "ml"):
            assert kubectl(running_sandbox.kubeconfig, "create", "namespace", namespace).code == 0
        port = host.url.rpartition(":")[2]
        for words in (
            ("configmap", "argosy-cm", "-n", "argocd", f"--from-literal=notebooks.network={port}"),
            ("secret", "generic", "robot", "-n", "ml", "--from-literal=username=robot",
             "--from-literal=password=s3cret-word"),
            ("serviceaccount", "trainer", "-n", "ml"),
            ("role", "progress", "-n", "ml", "--verb=patch", "--resource=configmaps",
             "--resource-name=long-validation"),
            ("rolebinding", "progress", "-n", "ml", "--role=progress", "--serviceaccount=ml:trainer"),
        ):  # fmt: skip
            done = kubectl(running_sandbox.kubeconfig, "create", *words)
            assert done.code == 0, done.err
        assert apply(running_sandbox, *installed()).code == 0
        yield running_sandbox


def installed() -> list[dict[str, Any]]:
    """Return the shipped manifests, changed only to run the program under test as a local process."""
    done = kubectl(Path("/dev/null"), "kustomize", SHIPPED)
    assert done.code == 0, done.err
    manifests = [dict(document) for document in read_yaml_documents(done.out)]
    (deployment,) = [manifest for manifest in manifests if manifest["kind"] == "Deployment"]
    template = deployment["spec"]["template"]
    template["metadata"]["annotations"] = {"sandbox.argosy.dev/run": "process"}
    (container,) = template["spec"]["containers"]
    assert container["command"][0] == "argosy"
    container["command"][:1] = [sys.executable, "-m", "argosy"]
    container["env"].append({"name": "PYTHONPATH", "value": str(Path(argosy.__file__).parents[1])})
    container["env"].append({"name": "GIT_INIT_IMAGE", "value": "git:1"})
    return manifests


def apply(server: Sandbox, *manifests: Any) -> Finished:
    return kubectl(server.kubeconfig, "apply", "-f", "-", input="---\n".join(map(dump_yaml, manifests)))


def job(host: GitHost, name: str, path: str, **pod: Any) -> dict[str, Any]:
    git = {"url": f"{host.url}/notebooks.git", "ref": "main", "credentialsSecret": "robot"}
    spec = {
        "notebook": {"git": git, "path": path}, "timeout": "2m",
        "podConfig": {"containerImage": "a:1", "env": [PYTHON, {"name": "WHO", "value": "me"}], **pod},
    }  # fmt: skip
    metadata = {"name": name, "namespace": "ml", "annotations": AS_PROCESS}
    kind = {"apiVersion": "mlops.mlops.dev/v1alpha1", "kind": "NotebookValidationJob"}
    return {**kind, "metadata": metadata, "spec": spec | ({"parameters": {"rate": 2}} if path == "train.ipynb" else {})}


def stored(server: Sandbox, resource: str, name: str) -> dict[str, Any]:
    result = kubectl(server.kubeconfig, "get", resource, name, "-n", "ml", "-o", "json", "--ignore-not-found")
    assert result.code == 0, result.err
    return dict(json.loads(result.out)) if result.out else {}


def becomes(server: Sandbox, name: str, is_so: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    end = time.monotonic() + HANG_SECONDS
    while time.monotonic() < end:
        status = stored(server, "nvj", name).get("status") or {}
        if is_so(status):
            return status
        time.sleep(0.1)
    pod = stored(server, "pod", f"{name}-validation")
    log = kubectl(server.kubeconfig, "logs", f"deployment/{OPERATOR}", "-n", SYSTEM)
    raise AssertionError((status, pod.get("status"), log.out[-3000:], log.err))


def complaints(log: str) -> list[str]:
    return [line for line in log.splitlines() if "forbidden" in line.lower() or "Traceback" in line]


def has_ended(status: dict[str, Any]) -> bool:
    return status.get("phase") in ("Succeeded", "Failed")


def test_notebook_of_a_private_repository_runs_in_a_pod_and_writes_its_model(
    server: Sandbox, host: GitHost, repository: Repository
) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models", "namespace": "ml"},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}  # fmt: skip
    volumes = {
        "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}],
        "volumeMounts": [{"name": "models", "mountPath": "/mnt/models"}],
    }
    assert apply(server, claim, job(host, "train", "train.ipynb", **volumes)).code == 0
    status = becomes(server, "train", has_ended)
    assert status["phase"] == "Succeeded", status
    assert status["message"] == "Validation completed: 3/3 cells succeeded (100.0% success rate)"
    assert status["results"][-1]["output"].strip() == "rate 2 me"
    assert status["validationPodName"] == "train-validation"
    assert len(status["gitCommit"]) == 40
    assert [artefact["path"] for artefact in status["artefacts"]] == ["/mnt/models/model"]
    pod = stored(server, "pod", "train-validation")
    assert "s3cret" not in json.dumps(pod)
    log = kubectl(server.kubeconfig, "logs", "train-validation", "-n", "ml", "-c", "validator").out
    assert "cell 2 code Success" in log and "Results Summary:" in log


def test_failing_notebook_in_a_pod_reports_every_cell(server: Sandbox, host: GitHost) -> None:
    """The upstream operator reads results only from Pods that succeeded."""
    assert apply(server, job(host, "broken", "broken.ipynb")).code == 0
    status = becomes(server, "broken", has_ended)
    message = "Cell execution failed: ZeroDivisionError: division by zero"
    assert (status["phase"], status["message"]) == ("Failed", message)
    assert [result["status"] for result in status["results"]] == ["Success", "Failure", "Skipped"]


def test_running_job_reports_cells_and_keeps_its_pod_when_the_operator_restarts(server: Sandbox, host: GitHost) -> None:
    """The operator restarts meanwhile: it adopts the running Pod and starts no other."""
    assert apply(server, job(host, "long", "long.ipynb", serviceAccountName="trainer")).code == 0
    status = becomes(server, "long", lambda status: status.get("results"))
    assert status["phase"] == "ValidationRunning"
    assert status["results"][-1]["output"] == "begun\n"
    log = kubectl(server.kubeconfig, "logs", f"deployment/{OPERATOR}", "-n", SYSTEM).out
    assert ("Running add-ons on" in log, complaints(log)) == (True, [])
    uid = stored(server, "pod", "long-validation")["metadata"]["uid"]
    done = kubectl(server.kubeconfig, "delete", "pod", "-l", "control-plane=controller-manager", "-n", SYSTEM)
    assert done.code == 0, done.err
    rolled = kubectl(server.kubeconfig, "rollout", "status", f"deployment/{OPERATOR}", "-n", SYSTEM)
    assert rolled.code == 0, rolled.err
    assert stored(server, "pod", "long-validation")["metadata"]["uid"] == uid
    assert len(stored(server, "nvj", "long")["status"]["attempts"]) == 1
    assert kubectl(server.kubeconfig, "delete", "nvj", "long", "-n", "ml").code == 0
    left = [("pod", "long-validation"), ("configmap", "long-validation")]
    wait_until(lambda: not any(stored(server, *reference) for reference in left), "nothing of it is left")


def test_operator_log_has_no_forbidden_request(server: Sandbox) -> None:
    """The restarted operator becomes leader, and its requests are not refused either."""

    def read_log() -> str:
        return kubectl(server.kubeconfig, "logs", f"deployment/{OPERATOR}", "-n", SYSTEM).out

    wait_until(lambda: "became leader" in read_log(), "the operator leads")
    assert complaints(read_log()) == []
