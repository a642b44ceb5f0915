"""Hooks and waves with running workloads: from simulators, or real controllers with a simulated kubelet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators import make
from support.engine import Room, config_map

pytestmark = pytest.mark.anyio
HOOK, POLICY, WAVE = (f"argocd.argoproj.io/{word}" for word in ("hook", "hook-delete-policy", "sync-wave"))
FAIL = "sandbox.argosy.dev/fail"


@pytest.fixture
async def played(room: Room) -> AsyncIterator[Room]:
    """Simulate all controllers, or only the kubelet on a real server with its own controller-manager."""
    addon = make("kubelet" if room.flavour == "real" else "")
    async with run_addons([addon], room.cluster, on_failure=lambda: None):
        yield room


def workload(kind: str, name: str, image: str = "example:1", *, spec: Manifest, **annotations: str) -> Manifest:
    is_job = kind == "Job"
    pod: dict[str, Any] = {"containers": [{"name": "main", "image": image, "resources": {"limits": {"cpu": "0.50"}}}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod | ({"restartPolicy": "Never"} if is_job else {})}
    selector = {} if is_job else {"selector": {"matchLabels": {"app": name}}}
    return {
        "apiVersion": "batch/v1" if is_job else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"template": template, **selector, **spec},
    }


def results(app: dict[str, Any]) -> dict[str, str]:
    sync_results = app["status"]["operationState"]["syncResult"]["resources"]
    return {result["name"]: result.get("hookPhase", result["status"]) for result in sync_results}


def born(manifest: Manifest) -> str:
    return str(manifest["metadata"]["creationTimestamp"])


@pytest.mark.tier("all")
async def test_hooks_and_waves_run_in_order_and_wait_for_healthy_workloads(played: Room) -> None:
    storage = {"storageClassName": "standard-wait", "resources": {"requests": {"storage": "1024Mi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], **storage}}]
    stateful = {"serviceName": "db", "volumeClaimTemplates": claims}
    late = {**config_map("late"), "metadata": {"name": "late", "annotations": {WAVE: "2"}}}
    files = {
        "app/pre.yaml": workload("Job", "pre", spec={}, **{HOOK: "PreSync"}),
        "app/web.yaml": workload("Deployment", "web", spec={"replicas": 2}),
        "app/db.yaml": workload("StatefulSet", "db", spec=stateful, **{WAVE: "1"}),
        "app/late.yaml": late,
        "app/post.yaml": workload("Job", "post", spec={}, **{HOOK: "PostSync", POLICY: "HookSucceeded"}),
    }
    played.repository.push(files)
    await played.deliver(syncPolicy={"automated": {"prune": True, "selfHeal": True}})
    app = await played.until(lambda status: status.get("history") and status["health"]["status"] == "Healthy")
    assert results(app) == dict.fromkeys(("pre", "web", "db", "late", "post"), "Succeeded")
    assert await played.get("batch/Job", "post") is None
    pre, web = await played.get("batch/Job", "pre") or {}, await played.get("apps/Deployment", "web") or {}
    db, last = await played.get("apps/StatefulSet", "db") or {}, await played.get("ConfigMap", "late") or {}
    came_up = next(condition for condition in web["status"]["conditions"] if condition["type"] == "Available")[
        "lastTransitionTime"
    ]
    times = [pre["status"]["completionTime"], born(web), came_up, born(db), born(last)]
    assert times == sorted(times)
    app = await played.settled()
    assert app["status"]["sync"]["status"] == "Synced"  # controller writes are not drift, and nothing was self-healed
    assert "autoHealAttemptsCount" not in app["status"]["operationState"]["operation"]["sync"]
    assert len(app["status"]["history"]) == 1
    assert app["status"]["summary"]["images"] == ["example:1"]
    played.repository.push({"app/web.yaml": workload("Deployment", "web", "example:2", spec={"replicas": 2})})
    await played.until(lambda status: len(status["history"]) == 2 and status["health"]["status"] == "Healthy")
    await played.until(lambda status: status["summary"]["images"] == ["example:1", "example:2"])


async def test_failed_presync_job_fails_the_sync_before_other_resources(played: Room) -> None:
    failing = workload("Job", "check", spec={"backoffLimit": 0}, **{HOOK: "PreSync", FAIL: "Exit"})
    sorry = workload("Job", "sorry", spec={}, **{HOOK: "SyncFail"})
    played.repository.push({"app/check.yaml": failing, "app/sorry.yaml": sorry, "app/a.yaml": config_map("a")})
    await played.deliver()
    await played.sync()
    app = await played.until_over()
    state = app["status"]["operationState"]
    assert state["phase"] == "Failed"
    assert results(app) == {"check": "Failed", "sorry": "Succeeded"}
    assert await played.get("ConfigMap", "a") is None
