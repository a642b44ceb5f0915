"""Notebook jobs on a real sandbox with a real kubectl: the document's manifests unchanged, and real notebooks."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.objects import dump_yaml
from support import prometheus_text
from support.clusters import KUBECTL, Finished, Sandbox, argosy, kubectl, sandbox
from support.deadlines import HANG_SECONDS, wait_until
from support.notebook_jobs import Repository, notebook
from support.tiers import IN_TEST_ALL

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytestmark = [
    pytest.mark.skipif(not KUBECTL.exists(), reason="there is no kubectl here (make install)"),
    pytest.mark.skipif(sys.platform != "linux", reason="folders are mounted on Linux alone"),
]
DOCUMENTS = Path(__file__).parents[3] / "shared" / "seeds"
FENCE = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
PATIENT = f"--timeout={HANG_SECONDS - 1:g}s"  # shorter than the hang limit, so that kubectl reports the reason
URL = "https://git.example.com/notebooks.git"
IMAGE = "quay.io/jupyter/minimal-notebook:latest"
TRAIN = """
import json, os, pathlib
pathlib.Path('/mnt/models/model.json').write_text(json.dumps({'rate': rate}))
print('rate', rate, os.environ['WHO'])
"""


def documented() -> list[str]:
    """Return each NotebookValidationJob of the documents as text."""
    texts = [file.read_text() for file in sorted(DOCUMENTS.glob("002*.txt"))] if DOCUMENTS.is_dir() else []
    parts = [part for text in texts for block in FENCE.findall(text) for part in re.split(r"^---\n", block, flags=re.M)]
    return [part for part in parts if re.search(r"^kind: NotebookValidationJob$", part, re.MULTILINE)]


DOCUMENTED = documented()
NAMES = [re.findall(r"^  name: (.*)$", text, re.MULTILINE)[0] for text in DOCUMENTED]


def two_now(texts: list[str], names: list[str]) -> list[Any]:
    """Mark the parameters: the first two run in `make test`, the others in `make test-all`."""
    pairs = enumerate(zip(texts, names))
    return [pytest.param(text, id=name, marks=[IN_TEST_ALL] * (number > 1)) for number, (text, name) in pairs]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    new_repository = Repository(tmp_path_factory.mktemp("git") / "notebooks")
    new_repository.commit({
        "train.ipynb": notebook(("rate = 1", ["parameters"]), TRAIN),
        "broken.ipynb": notebook("print('before')", "import not_here_at_all", "print('after')"),
    })  # fmt: skip
    return new_repository


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, repository: Repository) -> Iterator[Sandbox]:
    folder = tmp_path_factory.mktemp("jobs")
    with sandbox(folder / "data", "--port", "0", "--addons", "notebooks") as running_sandbox:
        settings = {"source.mirrors": f"{URL} file://{repository.folder}\n"}
        for namespace in ("argocd", "ml-platform"):
            assert kubectl(running_sandbox.kubeconfig, "create", "namespace", namespace).code == 0
        argosy_cm = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argosy-cm", "namespace": "argocd"}}
        assert apply(running_sandbox, {**argosy_cm, "data": settings}).code == 0
        yield running_sandbox


def apply(server: Sandbox, manifest: Any, *flags: str) -> Finished:
    text = manifest if isinstance(manifest, str) else dump_yaml(manifest)
    return kubectl(server.kubeconfig, "apply", *flags, "-f", "-", input=text)


def stored(server: Sandbox, name: str, namespace: str = "default") -> dict[str, Any]:
    result = kubectl(server.kubeconfig, "get", "nvj", name, "-n", namespace, "-o", "json")
    assert result.code == 0, result.err
    manifest: dict[str, Any] = json.loads(result.out)
    return manifest


def job(name: str, path: str, **spec: Any) -> dict[str, Any]:
    default_spec = {
        "notebook": {"git": {"url": URL, "ref": "main"}, "path": path},
        "podConfig": {"containerImage": "a:1"},
    }
    metadata = {"name": name, "namespace": "default"}
    kind = {"apiVersion": "mlops.mlops.dev/v1alpha1", "kind": "NotebookValidationJob"}
    return {**kind, "metadata": metadata, "spec": {**default_spec, **spec}}


def claim(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


@pytest.mark.skipif(not DOCUMENTED, reason="../shared/seeds is not here")
@pytest.mark.parametrize("text", two_now(DOCUMENTED, NAMES))
def test_documented_job_applies_with_the_expected_warnings(server: Sandbox, text: str) -> None:
    done = apply(server, text)
    assert done.code == 0, done.err
    assert apply(server, text).out.strip().endswith("unchanged")
    warnings = [line for line in done.err.splitlines() if line.startswith("Warning: ")]
    assert any("move it to spec.podConfig.volumes" in line for line in warnings) is ("\n  volumes:" in text)
    has_pod = "podConfig" in text and "containerImage" not in text
    assert any(IMAGE in line for line in warnings) is (has_pod or "podConfig" not in text)


@pytest.mark.skipif(not DOCUMENTED, reason="../shared/seeds is not here")
def test_documented_spec_is_stored_unchanged(server: Sandbox) -> None:
    text = DOCUMENTED[NAMES.index("retrain-model")]
    apply(server, text)
    spec = stored(server, "retrain-model", "ml-platform")["spec"]
    assert spec["volumes"][0]["persistentVolumeClaim"] == {"claimName": "kserve-model-storage"}
    assert spec["podConfig"] == {
        "serviceAccountName": "default", "volumeMounts": [{"name": "model-storage", "mountPath": "/mnt/models"}]
    }  # fmt: skip


def test_job_runs_a_notebook_of_a_commit_with_its_volume(server: Sandbox, repository: Repository) -> None:
    commit = repository.commit({"train.ipynb": notebook(("rate = 2", ["parameters"]), TRAIN)})
    repository.commit({"train.ipynb": notebook("raise ValueError('not this one')")})
    pod = {
        "containerImage": "a:1",
        "env": [{"name": "WHO", "value": "me"}],
        "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}],
        "volumeMounts": [{"name": "models", "mountPath": "/mnt/models"}],
    }
    apply(server, claim("models"))
    notebook_job = job("train", "train.ipynb", podConfig=pod, parameters={"rate": 0.5})
    notebook_job["spec"]["notebook"]["git"]["ref"] = commit
    done = apply(server, notebook_job)
    assert (done.code, done.err) == (0, "")
    waited = kubectl(server.kubeconfig, "wait", "--for=condition=Ready", "nvj/train", PATIENT)
    assert waited.code == 0, (waited.err, stored(server, "train").get("status"))
    assert kubectl(server.kubeconfig, "wait", "--for=condition=complete", "nvj/train", PATIENT).code == 0
    status = stored(server, "train")["status"]
    assert status["message"] == "Validation completed: 2/2 cells succeeded (100.0% success rate)"
    assert status["results"][-1]["output"].strip() == "rate 0.5 me"
    assert status["gitCommit"] == commit
    assert [artefact["path"] for artefact in status["artefacts"]] == ["/mnt/models/model.json"]
    row = kubectl(server.kubeconfig, "get", "nvj", "train").out.splitlines()[1].split()
    assert row[:3] == ["train", "Succeeded", "train.ipynb"]


@pytest.mark.tier("all")
def test_failing_notebook_is_retried_by_a_policy_without_yaml_quotes(server: Sandbox) -> None:
    text = (
        dump_yaml(job("broken", "broken.ipynb"))
        + "  retryPolicy:\n    on: any\n    maxRetries: 1\n    backoff: 100ms\n"
    )
    assert apply(server, text).code == 0
    waited = kubectl(server.kubeconfig, "wait", "--for=condition=Failed", "nvj/broken", PATIENT)
    assert waited.code == 0, waited.err
    status = stored(server, "broken")["status"]
    assert (status["message"], status["retryCount"]) == ("Cell execution failed: ModuleNotFoundError", 1)
    assert [result["status"] for result in status["results"]] == ["Success", "Failure", "Skipped"]
    assert status["results"][1]["errorMessage"] == "ModuleNotFoundError: No module named 'not_here_at_all'"
    events = kubectl(server.kubeconfig, "get", "events", "-o", "jsonpath={.items[*].reason}").out.split()
    assert {"ValidationRetrying", "ValidationFailed"} <= set(events)


def golden(text: str, *outputs: str) -> str:
    """Return the notebook with these outputs saved in its cells."""
    document = json.loads(text)
    for cell, output in zip(document["cells"], outputs):
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": output}] if output else []
    return json.dumps(document)


@pytest.mark.tier("all")
def test_jobs_are_checked_against_golden_notebooks_and_expected_outputs(
    server: Sandbox, repository: Repository
) -> None:
    scored = notebook("print('accuracy', 0.9401)", "rows = [1, 2, 3]", "\n".join(["# long"] * 60))
    repository.commit({
        "score.ipynb": scored,
        "deep/golden/near.ipynb": golden(scored, "accuracy 0.94005\n"),
        "deep/golden/far.ipynb": golden(scored, "accuracy 0.97\n"),
    })  # fmt: skip
    beside = {"git": {"url": URL, "ref": "main"}}
    near, far = ({**beside, "path": f"deep/golden/{name}.ipynb"} for name in ("near", "far"))
    expected = {"level": "learning", "expectedOutputs": [{"cell": 1, "type": "list", "shape": "4"}]}
    apply(server, job("near", "score.ipynb", goldenNotebook=near))
    apply(server, job("far", "score.ipynb", goldenNotebook=far))
    apply(server, job("short", "score.ipynb", validationConfig=expected))
    for name, condition in (("near", "Complete"), ("far", "Failed"), ("short", "Failed")):
        words = ("wait", f"--for=condition={condition}", f"nvj/{name}", PATIENT)
        waited = kubectl(server.kubeconfig, *words)
        assert waited.code == 0, (name, waited.err, stored(server, name).get("status"))
    matched, different = (stored(server, name)["status"]["comparisonResult"] for name in ("near", "far"))
    assert (matched["result"], matched["matchedCells"]) == ("matched", 3)
    assert [diff["actual"].strip() for diff in different["diffs"]] == ["accuracy 0.9401"]
    message = "Validation failed: golden notebook comparison failed (2/3 cells matched)"
    assert stored(server, "far")["status"]["message"] == message
    status = stored(server, "short")["status"]
    assert status["message"] == "Validation failed: cell 1: has the shape 3, expected 4"
    assert [result["status"] for result in status["results"]] == ["Success"] * 3
    assert {"shape-mismatch", "missing-assertion"} == {
        feedback["category"] for feedback in status["educationalFeedback"]
    }


def test_metrics_endpoint_serves_job_and_api_server_metrics(server: Sandbox) -> None:
    def read_metrics() -> str:
        return str(server.request("GET", "/metrics").body.decode())

    assert apply(server, job("counted", "no-such.ipynb")).code == 0
    wait_until(lambda: "# TYPE notebookvalidationjob_reconciliation_duration_seconds histogram" in read_metrics())
    assert "# TYPE apiserver_request_total counter" in read_metrics()
    assert prometheus_text.read(read_metrics())


@pytest.mark.tier("all")
def test_run_killed_with_argosy_is_retried_after_restart(
    tmp_path: Path, repository: Repository, server: Sandbox
) -> None:
    first_hangs = """
import pathlib, time
seen = pathlib.Path('/mnt/seen/it')
if not seen.exists():
    seen.write_text('x')
    time.sleep(300)
"""
    repository.commit({"once.ipynb": notebook("print('begun')", first_hangs)})
    volume = {"name": "seen", "persistentVolumeClaim": {"claimName": "seen"}}
    pod = {"containerImage": "a:1", "volumes": [volume], "volumeMounts": [{"name": "seen", "mountPath": "/mnt/seen"}]}
    flags = ("--port", "0", "--addons", "notebooks")
    with sandbox(tmp_path / "data", *flags) as killed:
        kubectl(killed.kubeconfig, "create", "namespace", "argocd")
        settings = kubectl(server.kubeconfig, "get", "cm", "argosy-cm", "-n", "argocd", "-o", "json").out
        data = json.loads(settings)["data"]
        metadata = {"name": "argosy-cm", "namespace": "argocd"}
        apply(killed, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        apply(killed, claim("seen"))
        apply(killed, job("once", "once.ipynb", podConfig=pod, retryPolicy={"backoff": "100ms"}))
        condition = "jsonpath={.status.results[0].status}=Success"
        waited = kubectl(killed.kubeconfig, "wait", f"--for={condition}", "nvj/once", PATIENT)
        assert waited.code == 0, (waited.err, stored(killed, "once"))
        volumes = killed.folder / "volumes" / "default" / "seen" / "it"
        wait_until(volumes.exists, "the second cell is in the middle")
        killed.kill()
    with sandbox(tmp_path / "data", *flags) as after:
        waited = kubectl(after.kubeconfig, "wait", "--for=condition=Complete", "nvj/once", PATIENT)
        assert waited.code == 0, (waited.err, stored(after, "once"))
        status = stored(after, "once")["status"]
    assert [attempt["phase"] for attempt in status["attempts"]] == ["Failed", "Succeeded"]
    assert status["attempts"][0]["reason"] == "PodFailed"


@pytest.mark.tier("all")
def test_deleting_a_running_job_removes_its_files(server: Sandbox, repository: Repository) -> None:
    repository.commit({"long.ipynb": notebook("print('begun')", "import time\ntime.sleep(300)")})
    apply(server, job("long", "long.ipynb"))
    condition = "jsonpath={.status.results[0].status}=Success"
    waited = kubectl(server.kubeconfig, "wait", f"--for={condition}", "nvj/long", PATIENT)
    assert waited.code == 0, waited.err
    assert kubectl(server.kubeconfig, "delete", "nvj", "long").code == 0
    runs = server.folder / "runs" / "default" / "long"
    wait_until(lambda: not runs.exists(), f"{runs} goes")


@pytest.mark.tier("all")
def test_notebook_commands_list_show_and_trigger_jobs(server: Sandbox, repository: Repository) -> None:
    repository.commit({"again.ipynb": notebook(("rate = 1", ["parameters"]), "print('one')", "1 / (2 - rate)")})
    apply(server, job("again", "again.ipynb"))
    first = argosy("notebook", "logs", "again", "-f", *build_kubeconfig_args(server), home=server.folder.parent)
    assert (first.code, first.err.splitlines()[-1][:10]) == (0, "Succeeded:"), first.err
    heads = [rf"-- cell {number}  Success  \S+\n" for number in range(3)]
    assert re.fullmatch(rf"{heads[0]}{heads[1]}one\n{heads[2]}1.0\n", first.out)
    again = argosy("notebook", "trigger", "again", "--wait", *build_kubeconfig_args(server), home=server.folder.parent)
    assert again.out.splitlines()[0] == "default/again runs again" and "-- cell 2  Success" in again.out, again.err
    attempts = stored(server, "again")["status"]["attempts"]
    assert [attempt["number"] for attempt in attempts] == [1, 2], attempts
    listed = argosy("notebook", "list", *build_kubeconfig_args(server), home=server.folder.parent)
    assert re.search(r"^again +default +Succeeded +3/3 +[0-9a-f]{7} ", listed.out, re.MULTILINE)
    result = argosy("notebook", "get", "default/again", *build_kubeconfig_args(server), home=server.folder.parent)
    assert re.search(r"^run #2 +Succeeded at ", result.out, re.MULTILINE)
    cells = argosy("notebook", "cells", "again", *build_kubeconfig_args(server), home=server.folder.parent)
    assert re.search(r"^1 +Success +\S+ +one$", cells.out, re.MULTILINE)
    wrong = argosy("notebook", "get", "agan", *build_kubeconfig_args(server), home=server.folder.parent)
    assert wrong.code == 2 and "did you mean again?" in wrong.err


def build_kubeconfig_args(server: Sandbox) -> tuple[str, str]:
    return "--kubeconfig", str(server.kubeconfig)
