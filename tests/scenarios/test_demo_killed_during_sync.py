"""`kill -9` of the demo during a production sync, and the state after a restart with the same data folder."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.objects import Manifest, dump_yaml_documents
from support.clusters import KUBECTL
from support.demo import Demo, demo

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.skipif(not KUBECTL.exists(), reason=f"kubectl: there is none at {KUBECTL} (make install)"),
]
OVERLAY = "llmops-via-argocd/deploy_model/overlays/production"
NAME, NAMESPACE = "llmops-production", "llmops-prod"
GOOD = ("Synced", "Healthy")
HOOKS = {"check": "PreSync", "warm-up": "Sync", "tell": "PostSync"}


def hook(name: str, phase: str, **extra_annotations: str) -> Manifest:
    annotations = {"argocd.argoproj.io/hook": phase, **extra_annotations}
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example:1"}]}
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}}}


def push_a_release_with_hooks(running: Demo, work: Path) -> None:
    running.git("clone", "-q", running.where["repository"], str(work))
    file = work / OVERLAY / "kustomization.yaml"
    text = file.read_text()
    assert text.count('limits/cpu\n        value: "4"') == text.count("  - ../../base\n") == 1
    text = text.replace('limits/cpu\n        value: "4"', 'limits/cpu\n        value: "6"')
    file.write_text(text.replace("  - ../../base\n", "  - ../../base\n  - hooks.yaml\n"))
    slow = {"sandbox.argosy.dev/run-for": "3s", "argocd.argoproj.io/sync-wave": "2"}
    hooks = [hook(name, phase, **(slow if phase == "Sync" else {})) for name, phase in HOOKS.items()]
    (work / OVERLAY / "hooks.yaml").write_text(dump_yaml_documents(hooks))
    running.git("-C", str(work), "add", "-A")
    running.git("-C", str(work), "commit", "-qm", "production: six CPUs, with hooks")
    running.git("-C", str(work), "push", "-q")


def jobs(running: Demo) -> dict[str, str]:
    return _identities(running.kubectl("get", "jobs", "-n", NAMESPACE, "-o", "json"))


def models(running: Demo) -> dict[str, str]:
    return _identities(running.kubectl("get", "inferenceservices", "-A", "-o", "json"))


def _identities(listed: str) -> dict[str, str]:
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in json.loads(listed)["items"]}


def pods_made(running: Demo) -> dict[str, int]:
    """How often each Job started, by the events of the Job controller; deleted Jobs are counted too."""
    events = json.loads(running.kubectl("get", "events", "-n", NAMESPACE, "-o", "json"))["items"]
    job_starts = [
        event for event in events if event["involvedObject"]["kind"] == "Job" and event["reason"] == "SuccessfulCreate"
    ]
    counts: dict[str, int] = {}
    for job_start in job_starts:
        name = job_start["involvedObject"]["name"]
        counts[name] = counts.get(name, 0) + job_start.get("count", 1)
    return counts


def histories(running: Demo) -> dict[str, list[Any]]:
    return {name: app["status"].get("history", []) for name, app in running.apps().items()}


def operation(running: Demo) -> dict[str, Any]:
    operation_state: dict[str, Any] = running.apps()[NAME]["status"]["operationState"]
    return operation_state


def test_production_sync_resumes_after_kill_and_runs_each_hook_once(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    flags = ("--data-dir", str(tmp_path / "kept"), "--api-port", "0", "--argocd", "plain")
    with demo(tmp_path / "home", *flags) as running:
        running.argosy("app", "sync", NAME)
        running.until(lambda: running.words(NAME) == GOOD)
        push_a_release_with_hooks(running, tmp_path / "work")
        running.until(lambda: running.words(NAME)[0] == "OutOfSync")
        before = histories(running)
        assert {name: len(history) for name, history in before.items()} == {
            "llmops-dev": 1, "llmops-staging": 2, NAME: 1,
        }  # fmt: skip
        running.argosy("app", "sync", NAME, "--async")
        running.until(lambda: "prod-warm-up" in jobs(running))
        started_jobs, served = jobs(running), models(running)
        assert operation(running)["phase"] == "Running" and sorted(started_jobs) == ["prod-check", "prod-warm-up"]
        running.process.kill()
        running.process.wait()
    with demo(tmp_path / "home", *flags) as running:
        running.until(lambda: running.words(NAME) == GOOD and operation(running)["phase"] == "Succeeded")
        after = histories(running)
        assert {**after, NAME: after[NAME][:-1]} == before
        assert after[NAME][-1]["revision"] == running.git("-C", str(tmp_path / "work"), "rev-parse", "HEAD").strip()
        assert {name: uid for name, uid in jobs(running).items() if name in started_jobs} == started_jobs
        assert models(running) == served
        assert pods_made(running) == {f"prod-{name}": 1 for name in HOOKS}
        jsonpath = "jsonpath={.spec.predictor.model.resources.limits.cpu}"
        model = ("inferenceservice/prod-qwen25-05b-instruct", "-n", NAMESPACE)
        assert running.kubectl("get", *model, "-o", jsonpath) == "6"
        assert {app["metadata"]["namespace"] for app in running.apps().values()} == {"argocd"}
        began = time.monotonic()
        running.end(signal.SIGINT)
        record_property("seconds until it ended", time.monotonic() - began)
        assert running.process.returncode == 0
    assert {file.name for file in (tmp_path / "kept").iterdir()} <= documented_files()


def documented_files() -> set[str]:
    page = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text()
    rows = page.partition("## Files in a data folder")[2].partition("\n## ")[0].splitlines()
    named = [row.split("|")[1] for row in rows if row.startswith("| `")]
    return {name.partition("/")[0] for cell in named for name in re.findall(r"`([^`]+)`", cell)}
