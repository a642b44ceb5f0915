"""Common kinds with each way of applying and comparing: fields that the API server adds are not drift."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support.engine import CONTROL, Room
from support.real_server import REAL

pytestmark = pytest.mark.anyio
KINDS = (Path(__file__).parents[2] / "data/comparing/kinds.yaml").read_text()
FINALIZER = "resources-finalizer.argocd.argoproj.io"
MACHINE: Manifest = {
    "apiVersion": "example.com/v1",
    "kind": "Machine",
    "metadata": {"name": "one", "annotations": {"argocd.argoproj.io/sync-options": "SkipDryRunOnMissingResource=true"}},
    "spec": {"disks": [{"name": "b"}, {"name": "a", "mode": "ro"}], "anything": {"x": [1, {"y": "z"}]}},
}
WAYS: dict[str, tuple[list[str], str]] = {  # sync options and compare options
    "client": ([], ""),
    "server": (["ServerSideApply=true"], ""),
    "server and its prediction": (["ServerSideApply=true"], "ServerSideDiff=true"),
}
LAST = list(WAYS)[-1]
CASES = [
    ("embedded", "client"),
    *(pytest.param("embedded", way, marks=pytest.mark.tier("all")) for way in WAYS if way != "client"),
    ("wire", LAST),  # needs the most server features
    *(pytest.param("real", way, marks=REAL.marks) for way in WAYS),
]


@pytest.mark.parametrize(("room", "way"), CASES, indirect=["room"])
async def test_server_defaults_cause_no_drift_and_resources_are_deleted_with_app(room: Room, way: str) -> None:
    options, comparing = WAYS[way]
    room.repository.push({"app/kinds.yaml": KINDS, "app/machine.yaml": MACHINE})
    annotations = {"argocd.argoproj.io/compare-options": comparing} if comparing else {}
    await room.deliver(metadata={"finalizers": [FINALIZER], "annotations": annotations})
    await room.sync(syncOptions=options)
    first = await room.until_over()
    assert first["status"]["operationState"]["phase"] == "Succeeded", first["status"]["operationState"]
    await room.until_synced()
    await room.annotate(refresh="hard")
    app = await room.settled()
    assert differing(app) == []
    before = await written(room, app)
    await room.sync(syncOptions=options)
    await room.until(lambda status: len(status["history"]) == 2)
    app = await room.until_over()
    assert await written(room, app) == before
    await room.cluster.delete(ResourceKey("argoproj.io", "Application", CONTROL, "models"))
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    assert await room.get("apps/Deployment", "web") is None
    assert await room.get("rbac.authorization.k8s.io/ClusterRole", "reads-everything", "") is None


def differing(app: dict[str, Any]) -> list[str]:
    return [
        f"{resource['kind']}/{resource['name']}"
        for resource in app["status"]["resources"]
        if resource["status"] != "Synced"
    ]


async def written(room: Room, app: dict[str, Any]) -> dict[str, Any]:
    """Return the managed fields of each resource, except those of kube-controller-manager."""
    fields_by_key = {}
    for resource in app["status"]["resources"]:
        key = ResourceKey(resource.get("group", ""), resource["kind"], resource.get("namespace", ""), resource["name"])
        fields = (await room.cluster.get(key) or {})["metadata"]["managedFields"]
        fields_by_key[str(key)] = [one for one in fields if one["manager"] != "kube-controller-manager"]
    return fields_by_key


def autoscaler(**spec: Any) -> Manifest:
    """Build an HPA in a version that no server prefers."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metadata = {"name": "web"}
    full_spec = {"scaleTargetRef": target, "maxReplicas": 5, "targetCPUUtilizationPercentage": 80, **spec}
    return {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": full_spec}


async def test_older_api_version_is_compared_and_applied_field_by_field(room: Room) -> None:
    room.repository.push({"app/scale.yaml": autoscaler(minReplicas=2)})
    await room.deliver(syncPolicy={"automated": {"selfHeal": True}})
    await room.until_synced()
    room.repository.push({"app/scale.yaml": autoscaler(targetCPUUtilizationPercentage=70)})
    await room.until_synced()
    spec = (await room.get("autoscaling/HorizontalPodAutoscaler", "web") or {})["spec"]
    assert spec["minReplicas"] == 1  # the server default: Git no longer sets two
    assert spec["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
    app = await room.settled()
    assert (app["status"]["sync"]["status"], len(app["status"]["history"])) == ("Synced", 2)
