"""Explanations in `argosy app list` for Applications with an unhealthy object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client import app_list_explanations
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio
CONTAINERS = [{"name": "main", "image": "predictor:1"}]
NO_ROOM = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: No preemption victims found."


def application(name: str, health: str, group: str, kind: str) -> Application:
    """Build an Application that manages one object of the same name."""
    status = {
        "sync": {"status": "Synced"},
        "health": {"status": health, "message": f"Caused by {group}/{kind}:ml/{name}"},
        "resources": [{"group": group, "version": "v1", "kind": kind, "namespace": "ml", "name": name}],
    }
    spec = {
        "source": {"repoURL": "https://git.example/ml", "path": name},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
    }
    return read_application({"metadata": {"name": name, "namespace": "argocd"}, "spec": spec, "status": status})


async def make(cluster: EmbeddedCluster, manifest: Manifest, status: dict[str, Any]) -> None:
    name = manifest["metadata"]["name"]
    manifest["metadata"]["namespace"] = "ml"
    await cluster.create(manifest)
    group = manifest["apiVersion"].rpartition("/")[0]
    key = ResourceKey(group, manifest["kind"], "ml", name)
    await cluster.patch(key, {"status": status}, manager="test", subresource="status")


async def diagnoses(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, apps: Sequence[Application]
) -> dict[str, str]:
    monkeypatch.setattr(app_list_explanations, "TIMEOUT_SECONDS", HANG_SECONDS)  # for slow machines
    explanations = await app_list_explanations.explain_unhealthy_or_differing(
        ApplicationService(cluster, "here", "argocd", "argocd"), apps
    )
    return {key.name: text for key, text in explanations.items()}


async def test_app_list_explains_unschedulable_pod_and_health_message(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_ROOM}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train"}, "spec": {"containers": CONTAINERS}}
    await make(cluster, pod, {"phase": "Pending", "conditions": [unscheduled]})
    spec = {"selector": {"matchLabels": {"app": "p"}}}
    spec["template"] = {"metadata": {"labels": {"app": "p"}}, "spec": {"containers": CONTAINERS}}
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "predictor"}, "spec": spec}
    await make(cluster, deployment, {"observedGeneration": 1, "conditions": [late]})
    apps = [application("train", "Progressing", "", "Pod"), application("predictor", "Degraded", "apps", "Deployment")]

    assert await diagnoses(cluster, monkeypatch, apps) == {
        "train": "Pod: Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        "predictor": 'Deployment: Deployment "predictor" exceeded its progress deadline',
    }
