"""`argosy app wait` stops early when the condition cannot be reached, and names the object that causes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.resource_key import ResourceKey
from support.app_commands import Scene, scene
from support.engine import config_map

pytestmark = pytest.mark.anyio
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "predictor", "annotations": {"argocd.argoproj.io/sync-wave": "3"}},
    "spec": {
        "selector": {"matchLabels": {"app": "predictor"}},
        "template": {
            "metadata": {"labels": {"app": "predictor"}},
            "spec": {"containers": [{"name": "main", "image": "predictor:1"}]},
        },
    },
}
NEVER = "600"  # seconds; so long that a test notices a wait that does not end early


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("argosy.gitops.application_client.condition_wait.FAILURE_CONFIRM_SECONDS", 0.3)
    monkeypatch.setattr("argosy.gitops.application_client.condition_wait.CHECK_INTERVAL_SECONDS", 0.1)
    async with scene(tmp_path) as opened_scene:
        opened_scene.repository.push({"app/settings.yaml": config_map(a="one")})
        yield opened_scene


def pod(owner: dict[str, Any], reason: str) -> dict[str, Any]:
    """Build a Pod that the kubelet cannot start."""
    above = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "predictor", "uid": owner["metadata"]["uid"]}
    state = {"waiting": {"reason": reason, "message": "no such image: predictor:1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "predictor-x2x", "namespace": "ml", "ownerReferences": [above]},
        "spec": {"containers": [{"name": "main", "image": "predictor:1"}]},
        "status": {"phase": "Pending", "containerStatuses": [
            {"name": "main", "image": "predictor:1", "imageID": "", "ready": False, "restartCount": 0, "state": state},
        ]},
    }  # fmt: skip


async def test_app_wait_stops_on_image_pull_backoff_and_names_the_pod_and_wave(desk: Scene) -> None:
    desk.repository.push({"app/predictor.yaml": DEPLOYMENT})
    await desk.deliver(syncPolicy={"automated": {"selfHeal": True}})
    await desk.until(lambda status: status["health"]["status"] == "Progressing")
    owner = await desk.get("apps/Deployment", "predictor")
    assert owner is not None
    stuck = pod(owner, "ImagePullBackOff")
    created = await desk.cluster.create(stuck)
    key = ResourceKey("", "Pod", "ml", "predictor-x2x")
    if not created.get("status", {}).get("containerStatuses"):
        await desk.cluster.patch(key, {"status": stuck["status"]}, subresource="status")
    result = await desk.argosy("app", "wait", "models", "--health", "--timeout", NEVER)
    assert result.code == 1, result.err
    assert "models: waiting cannot help: health is Progressing, not Healthy" in result.err
    assert "why: Pod/predictor-x2x -n ml: container main  ImagePullBackOff: no such image: predictor:1" in result.err
    assert "     wave 3: Deployment/predictor -n ml  Progressing" in result.err
    assert result.err.splitlines()[-1].startswith("next: argosy app tree models")


@pytest.mark.tier("all")
async def test_app_wait_stops_on_a_comparison_error(desk: Scene) -> None:
    await desk.deliver(source={"repoURL": desk.repository.url, "path": "nowhere", "targetRevision": "main"})
    await desk.until_condition("ComparisonError")
    result = await desk.argosy("app", "wait", "models", "--timeout", NEVER)
    assert result.code == 1, result.err
    assert "why: ComparisonError: " in result.err and "nowhere" in result.err


async def test_app_wait_operation_exits_1_after_a_failed_sync_but_0_as_argocd(desk: Scene) -> None:
    desk.repository.push({"app/wrong.yaml": {**config_map("wrong"), "data": {"not a key!": "x"}}})
    await desk.deliver()
    await desk.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await desk.sync()
    await desk.until_over()
    result = await desk.argosy("app", "wait", "models", "--operation", "--timeout", NEVER)
    assert result.code == 1, result.err
    assert "argosy: models: operation failed\nwhy: " in result.err and "ConfigMap/wrong  SyncFailed: " in result.err
    as_argocd = await desk.argosy("app", "wait", "models", "--operation", "--timeout", NEVER, program="argocd")
    assert as_argocd.code == 0, as_argocd.err


@pytest.mark.tier("all")
async def test_app_wait_stops_when_automated_sync_is_held(desk: Scene) -> None:
    await desk.deliver(syncPolicy={"automated": {}})
    await desk.until_synced()
    assert (await desk.argosy("app", "hold", "models", "--reason", "latency")).code == 0
    desk.repository.push({"app/settings.yaml": config_map(a="two")})
    await desk.until(lambda status: status["sync"]["status"] == "OutOfSync")
    result = await desk.argosy("app", "wait", "models", "--sync", "--timeout", NEVER)
    assert result.code == 1, result.err
    assert "automated sync is held by " in result.err and "latency" in result.err
    assert "next: argosy app diff models, then: argosy app release models" in result.err
