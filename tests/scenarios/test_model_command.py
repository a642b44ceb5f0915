"""`argosy model` on a demo: models are listed, tried, probed and restarted; curl reaches them too."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clusters import KUBECTL
from support.deadlines import HANG_SECONDS, wait_until
from support.demo import Demo, demo

pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason=f"kubectl: there is none at {KUBECTL} (make install)")
PATIENT = f"--timeout={HANG_SECONDS - 1:g}s"  # kubectl reports the reason before the test kills it
NAME = "dev-qwen25-05b-instruct"
RUNTIME = {
    "apiVersion": "serving.kserve.io/v1alpha1",
    "kind": "ServingRuntime",
    "metadata": {"name": "any", "namespace": "llmops-dev"},
    "spec": {
        "supportedModelFormats": [{"name": model_format, "autoSelect": True} for model_format in ("python", "sklearn")],
        "containers": [{"name": "kserve-container", "image": "any:1"}],
    },
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "models", "namespace": "llmops-dev"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def served(name: str, kind: str) -> dict[str, Any]:
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": "llmops-dev"},
        "spec": {"predictor": {"model": {"modelFormat": {"name": kind}, "storageUri": f"pvc://models/{name}"}}},
    }


def deliver(shown: Demo, place: Path, model: dict[str, Any]) -> None:
    file = place / "model.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [RUNTIME, CLAIM, model]}))
    shown.kubectl("apply", "-f", str(file))
    name = model["metadata"]["name"]
    try:
        shown.kubectl("wait", "--for=condition=Ready", f"inferenceservice/{name}", "-n", "llmops-dev", PATIENT)
    except AssertionError as error:
        pods = ("-n", "llmops-dev", "-l", f"serving.kserve.io/inferenceservice={name}")
        error.add_note(shown.argosy("model", "get", name) + shown.kubectl("logs", *pods))
        raise


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo(tmp_path_factory.mktemp("models"), "--api-port", "0") as running:
        yield running


def answerers() -> list[int]:
    """Return the pids of all model server processes on this machine."""
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"simulators.model_server" in (entry / "cmdline").read_bytes():
                pids.append(int(entry.name))
        except OSError:
            continue
    return pids


def test_model_list_shows_readiness_and_application(shown: Demo) -> None:
    items = {model["name"]: model for model in json.loads(shown.argosy("model", "list", "-o", "json"))["items"]}
    dev = items[NAME]
    assert (dev["ready"], dev["application"], dev["namespace"]) == ("True", "llmops-dev", "llmops-dev")
    header, *rows = shown.argosy("model", "list").splitlines()
    assert header.split() == ["NAME", "NAMESPACE", "READY", "URL", "RUNTIME", "APP"] and len(rows) == len(items)


def test_model_stub_answers_and_says_that_it_is_simulated(shown: Demo) -> None:
    assert shown.argosy("model", "try", NAME, "Hello").startswith(f"stub of {NAME}: simulated by argosy")
    whole = json.loads(shown.argosy("model", "try", NAME, '{"prompt": "Hello"}', "-o", "json"))
    assert whole["object"] == "text_completion" and whole["model"] == NAME
    assert "responds; Ready is True" in shown.argosy("model", "probe", NAME)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl: there is none")
def test_curl_reaches_the_url_of_the_status(shown: Demo) -> None:
    url = shown.kubectl("get", "inferenceservice", NAME, "-n", "llmops-dev", "-o", "jsonpath={.status.url}")
    where = url.removeprefix("http://")
    command = ["curl", "-sS", "--noproxy", "*", "--resolve", f"{where}:127.0.0.1", f"{url}/v1/models"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=True)
    assert json.loads(done.stdout)["data"][0]["id"] == NAME


@pytest.mark.tier("all")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl: there is none")
def test_route_host_and_cluster_dns_name_reach_the_model(shown: Demo) -> None:
    route_args = ("get", "route", NAME, "-n", "llmops-dev", "-o", "jsonpath={.status.ingress[0].host}")
    port = json.loads(shown.argosy("model", "get", NAME, "-o", "json"))["url"].rpartition(":")[2]
    for host in (shown.kubectl(*route_args), f"{NAME}-predictor.llmops-dev.svc.cluster.local"):
        way = ("--noproxy", "*", "--resolve", f"{host}:{port}:127.0.0.1")
        command = ["curl", "-sS", *way, f"http://{host}:{port}/v1/models"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=True)
        assert json.loads(done.stdout)["data"][0]["id"] == NAME


@pytest.mark.tier("all")
def test_port_forward_of_the_service_fails_and_names_the_model_url(shown: Demo) -> None:
    url = json.loads(shown.argosy("model", "get", NAME, "-o", "json"))["url"]
    where = ("--kubeconfig", shown.where["kubeconfig"], "-n", "llmops-dev")
    command = [str(KUBECTL), "port-forward", *where, f"service/{NAME}-predictor", "0:80"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 1 and f"the model answers at {url}" in done.stderr, done


@pytest.mark.tier("all")
def test_unknown_model_and_invalid_requests_fail(shown: Demo) -> None:
    shown.argosy("model", "get", "dev-qwen25-05b-instructs", code=2)
    shown.argosy("model", "try", NAME, '{"no": "such"}', code=2)
    shown.argosy("model", "try", NAME, '{"messages": []}', code=1)


LEARNED = """
import sys, joblib
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

found = load_iris()
joblib.dump(DecisionTreeClassifier(random_state=0).fit(found.data, found.target_names[found.target]), sys.argv[1])
"""


@pytest.mark.tier("all")
@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn: it is not installed")
def test_scikit_learn_model_predicts_and_logs_its_requests(shown: Demo, tmp_path: Path) -> None:
    folder = Path(shown.where["dataDir"]) / "volumes" / "llmops-dev" / "models" / "iris"
    folder.mkdir(parents=True)
    subprocess.run([sys.executable, "-c", LEARNED, str(folder / "model.joblib")], check=True, timeout=HANG_SECONDS)
    deliver(shown, tmp_path, served("iris", "sklearn"))
    assert shown.argosy("model", "try", "iris", "[[5.1, 3.5, 1.4, 0.2]]") == '["setosa"]\n'
    rows = {"name": "x", "shape": [1, 4], "datatype": "FP64", "data": [6.7, 3.0, 5.2, 2.3]}
    (prediction,) = json.loads(shown.argosy("model", "try", "iris", json.dumps({"inputs": [rows]})))
    assert (prediction["data"], prediction["datatype"]) == (["virginica"], "BYTES")
    pods = ("-l", "serving.kserve.io/inferenceservice=iris", "-c", "kserve-container", "-n", "llmops-dev")
    shown.until(lambda: "POST '/v2/models/iris/infer' 200" in shown.kubectl("logs", *pods))
    shown.argosy("model", "try", "iris", "[[1]]", code=1)
    shown.until(lambda: "ValueError: X has 1 features" in shown.argosy("oc", "logs", *pods))


def test_model_on_a_volume_answers_and_is_reloaded_after_a_restart(shown: Demo, tmp_path: Path) -> None:
    folder = Path(shown.where["dataDir"]) / "volumes" / "llmops-dev" / "models" / "doubling"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text("def predict(instances):\n    return [2 * each for each in instances]\n")
    deliver(shown, tmp_path, served("doubling", "python"))
    assert shown.argosy("model", "try", "doubling", "[1, 21]") == "[2, 42]\n"
    (folder / "model.py").write_text("def predict(instances):\n    return [3 * each for each in instances]\n")
    shown.argosy("model", "restart", "doubling")
    shown.until(lambda: _tripled(shown))


def _tripled(shown: Demo) -> bool:
    try:
        return shown.argosy("model", "try", "doubling", "[1]") == "[3]\n"
    except AssertionError:
        return False


@pytest.mark.tier("all")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_model_server_process_is_left_after_the_demo_ends(tmp_path: Path, number: int) -> None:
    with demo(tmp_path / "home", "--api-port", "0") as running:
        before = set(answerers())
        demo_pids = {pid for pid in before if _is_below(pid, running.process.pid)}
        assert demo_pids
        running.end(number)
        wait_until(lambda: not [pid for pid in demo_pids if Path(f"/proc/{pid}").exists()], f"all of {demo_pids} end")


def _is_below(pid: int, above: int) -> bool:
    while pid > 1:
        if pid == above:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False
