"""The notebook operator on a real API server: deploy/notebooks applies, its Roles suffice, its Pods are admitted.

There is no kubelet: the test writes the final Pod status itself.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from argosy.features.notebooks.runner.termination_message import pack_results
from argosy.kube.client.kubeconfig import load_kubeconfig
from argosy.kube.objects import dump_yaml, read_yaml_documents
from support.clusters import ARGOSY, KUBECTL, environment, kubectl, until_served
from support.deadlines import HANG_SECONDS
from support.failure_report import record_log

if TYPE_CHECKING:
    from conftest import RealServer

pytestmark = [
    pytest.mark.tier("realcluster"),
    pytest.mark.skipif(not KUBECTL.exists(), reason="there is no kubectl here (make install)"),
]
SHIPPED = Path(__file__).parents[2] / "deploy" / "notebooks"
SYSTEM, NAMESPACE = "jupyter-notebook-validator-system", "notebooks-taken"
ACCOUNT = "jupyter-notebook-validator-operator-controller-manager"
KIND = "notebookvalidationjobs.mlops.mlops.dev"
PASSED = {"status": "succeeded", "exit_code": 0, "statistics": {
    "succeeded_cells": 2, "failed_cells": 0, "success_rate": 100.0}}  # fmt: skip
COMMIT = "0123456789" * 4
ASKED: dict[str, Any] = {
    "notebook": {"git": {"url": "https://example.org/a.git", "ref": "main", "credentialsSecret": "robot"},
                 "path": "train.ipynb"},
    "goldenNotebook": {"git": {"url": "https://example.org/g.git", "ref": "v1"}, "path": "golden.ipynb"},
    "parameters": {"rate": 0.5},
    "podConfig": {
        "containerImage": "example.org/notebooks:1", "serviceAccountName": "default",
        "resources": {"requests": {"memory": "2Gi", "cpu": "1"}, "limits": {"memory": "4Gi", "cpu": "2"}},
        "env": [{"name": "WHO", "value": "me"},
                {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "aws", "key": "key"}}}],
        "envFrom": [{"configMapRef": {"name": "settings"}}], "credentials": ["aws"],
        "initContainers": [{"name": "prepare", "image": "example.org/a:1", "command": ["true"]}],
        "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
                    {"name": "more", "configMap": {"name": "settings"}}],
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"},
                         {"name": "more", "mountPath": "/more", "readOnly": True}],
        "nodeSelector": {"gpu": "yes"}, "tolerations": [{"key": "gpu", "operator": "Exists"}],
    },
}  # fmt: skip


@pytest.fixture
def installed(own_server: RealServer, tmp_path: Path) -> Iterator[Path]:
    """The server's kubeconfig, while the operator runs with its own ServiceAccount."""
    config = own_server.kubeconfig
    done = kubectl(config, "apply", "-k", SHIPPED)
    assert (done.code, done.err) == (0, ""), "a warning would tell that the Deployment does not fit its namespace"
    until_served(config, KIND)
    kubectl(config, "create", "namespace", NAMESPACE)
    kubectl(config, "label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    assert kubectl(config, "wait", "serviceaccount/default", "-n", NAMESPACE, "--for=create").code == 0
    leads = tmp_path / "operator.kubeconfig"
    leads.write_text(dump_yaml(_kubeconfig(config)))
    log = record_log(tmp_path / "operator.log")
    (deployment,) = read_yaml_documents((SHIPPED / "deployment.yaml").read_text())
    words = deployment["spec"]["template"]["spec"]["containers"][0]["command"]
    assert words[0] == "argosy" and words[-2] == "--port"
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port = opened.getsockname()[1]
    command = [ARGOSY, *words[1:-1], port, "--kubeconfig", leads, "-n", SYSTEM]
    with log.open("w") as file:
        process = subprocess.Popen(
            list(map(str, command)), stdout=file, stderr=file, env=environment(tmp_path), stdin=subprocess.DEVNULL
        )
    try:
        yield config
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=HANG_SECONDS) as answer:
            assert 'notebookvalidationjob_validations_total{namespace="notebooks-taken"' in answer.read().decode()
        log_text = log.read_text()
        assert process.poll() is None, log_text
        assert "forbidden" not in log_text.lower(), log_text
    finally:
        process.terminate()
        process.wait(timeout=HANG_SECONDS)
        kubectl(config, "delete", "namespace", NAMESPACE, "--wait=false")
        kubectl(config, "delete", "-k", SHIPPED, "--wait=false")


def _kubeconfig(admin: Path) -> dict[str, Any]:
    token = kubectl(admin, "create", "token", ACCOUNT, "-n", SYSTEM)
    assert token.code == 0, token.err
    text = kubectl(admin, "config", "view", "--raw", "--minify", "-o", "json").out
    kubeconfig: dict[str, Any] = json.loads(text)
    kubeconfig["users"] = [{"name": kubeconfig["users"][0]["name"], "user": {"token": token.out.strip()}}]
    assert load_kubeconfig([admin]).server
    return kubeconfig


def stored(config: Path, resource: str, name: str) -> dict[str, Any]:
    result = kubectl(config, "get", resource, name, "-n", NAMESPACE, "-o", "json", "--ignore-not-found")
    return dict(json.loads(result.out)) if result.out else {}


def until(is_so: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    end = time.monotonic() + HANG_SECONDS
    while time.monotonic() < end:
        if value := is_so():
            return value
        time.sleep(0.1)
    raise AssertionError(otherwise())


def test_notebook_job_succeeds_with_its_pod_in_a_restricted_namespace_on_a_real_server(installed: Path) -> None:
    config = installed
    metadata = {"name": "train", "namespace": NAMESPACE}
    kind = {"apiVersion": "mlops.mlops.dev/v1alpha1", "kind": "NotebookValidationJob"}
    assert kubectl(config, "apply", "-f", "-", input=dump_yaml({**kind, "metadata": metadata, "spec": ASKED})).code == 0
    pod = until(lambda: stored(config, "pod", "train-validation"), lambda: stored(config, "nvj", "train"))
    names = [container["name"] for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"])]
    assert names == ["git-clone", "golden-git-clone", "prepare", "validator"]
    assert pod["spec"]["nodeSelector"] == {"gpu": "yes"}
    cloned = {"exitCode": 0, "message": COMMIT}
    ended = {"exitCode": 0, "message": pack_results(PASSED)}
    status = {
        "phase": "Succeeded",
        "initContainerStatuses": [_status("git-clone", {"terminated": cloned})],
        "containerStatuses": [_status("validator", {"terminated": ended})],
    }
    words = ("patch", "pod", "train-validation", "-n", NAMESPACE, "--subresource=status", "--type=merge")
    done = kubectl(config, *words, "-p", json.dumps({"status": status}))
    assert done.code == 0, done.err
    words = ("wait", "--for=condition=Complete", "nvj/train", "-n", NAMESPACE)
    waited = kubectl(config, *words, f"--timeout={HANG_SECONDS:g}s", timeout=2 * HANG_SECONDS)
    assert waited.code == 0, (waited.err, stored(config, "nvj", "train"))
    job_status = stored(config, "nvj", "train")["status"]
    assert (job_status["phase"], job_status["gitCommit"]) == ("Succeeded", COMMIT)
    assert job_status["message"] == "Validation completed: 2/2 cells succeeded (100.0% success rate)"
    assert kubectl(config, "delete", "nvj", "train", "-n", NAMESPACE).code == 0

    def is_gone() -> bool:
        return not stored(config, "pod", "train-validation") and not stored(config, "configmap", "train-validation")

    until(is_gone, lambda: "something of it is still there")


def _status(name: str, state: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "state": state, "ready": False, "restartCount": 0, "image": "a:1", "imageID": "a"}
