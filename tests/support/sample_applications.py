"""Sample Applications for browser tests: healthy, OutOfSync, waiting for health, with syncs on hold, and broken.

In: a Room. Out: the Applications in that Room. Never: more than a browser test needs.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support.engine import CONTROL, Room, config_map

WAVE = "argocd.argoproj.io/sync-wave"
SECRET_WORD = "correct-horse-battery"  # must not appear on any page


def deployment(name: str, image: str = "registry.example.com/web:1.0", replicas: int = 1, wave: str = "0") -> Manifest:
    labels = {"app": name}
    container = {"name": "main", "image": image, "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "annotations": {WAVE: wave}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def service(name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
    }


def job(name: str, hook: str) -> Manifest:
    container = {"name": "main", "image": "registry.example.com/job:1.0", "command": ["true"]}
    metadata = {"name": name, "annotations": {"argocd.argoproj.io/hook": hook}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def secret(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"password": SECRET_WORD}}


FILES: dict[str, str | Manifest | None] = {
    "web/deployment.yaml": deployment("web", replicas=2),
    "web/service.yaml": service("web"),
    "web/settings.yaml": config_map("settings", level="info", mode="steady"),
    "web/secret.yaml": secret("web"),
    "fraud/settings.yaml": config_map("fraud", threshold="0.8"),
    "fraud/extra.yaml": config_map("fraud-extra", colour="blue"),
    "ranker/settings.yaml": config_map("ranker", depth="3"),
    "ranker/deployment.yaml": deployment("ranker", wave="1"),
    "ranker/after.yaml": {**config_map(done="yes"), "metadata": {"name": "ranker-after", "annotations": {WAVE: "2"}}},
    "broken/kustomization.yaml": "resources: [missing.yaml]\n",
    "bulk/one/settings.yaml": config_map("bulk-one", a="b"),
    "bulk/two/settings.yaml": config_map("bulk-two", a="b"),
    "late/settings.yaml": config_map("late", a="b"),
    "docs/settings.yaml": config_map("docs", theme="light"),
}  # fmt: skip


async def furnish(room: Room) -> None:
    room.repository.push(FILES, "Set up the web shop")
    automated: dict[str, Any] = {"automated": {"prune": True, "selfHeal": False}}
    await room.deliver("web", "web", syncPolicy=automated)
    await room.deliver("fraud", "fraud", metadata={"labels": {"env": "production", "team": "risk"}})
    await room.deliver("ranker", "ranker", metadata={"labels": {"env": "staging"}})
    await room.deliver("docs", "docs", syncPolicy=automated)
    await room.deliver("broken", "broken")
    await room.until_synced(name="web")
    await room.until_synced(name="docs")  # before the hold is set
    await room.sync("fraud")
    await room.until_over("fraud")
    await well(room, "web", 2)
    raised = config_map("fraud", threshold="0.9")
    room.repository.push({"fraud/settings.yaml": raised, "fraud/extra.yaml": None}, "Raise the threshold of fraud")
    await room.change("fraud", threshold="0.5")
    await room.settled("fraud")
    await room.sync("ranker")
    hold = '{"reason": "incident 42", "by": "ann", "at": "2026-11-15T12:00:00Z", "revision": ""}'
    await room.patch_app({"metadata": {"annotations": {"argosy.dev/hold": hold}}}, "docs")
    await event(room, "Deployment", "ranker", "Warning", "FailedCreate", "no node has room for ranker")


async def bulk(room: Room) -> None:
    """Add two Applications that were never synced."""
    for name in ("one", "two"):
        await room.deliver(f"bulk-{name}", f"bulk/{name}")
        await room.until(lambda status: status["sync"]["status"] == "OutOfSync", f"bulk-{name}")


async def well(room: Room, name: str, replicas: int = 1) -> None:
    """Set the Deployment status that a cluster with running Pods would report."""
    deployment = await room.get("apps/Deployment", name)
    assert deployment is not None
    condition = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}
    status = {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas,
        "conditions": [condition],
    }
    key = ResourceKey("apps", "Deployment", "ml", name)
    await room.cluster.patch(key, {"status": status}, subresource="status")


async def event(room: Room, kind: str, name: str, type_: str, reason: str, message: str) -> None:
    at = "2026-11-15T12:00:00Z"
    about = {"apiVersion": "apps/v1", "kind": kind, "namespace": "ml", "name": name}
    metadata = {"name": f"{name}.{reason.lower()}", "namespace": "ml"}
    await room.cluster.create(
        {
            "apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, "type": type_,
            "reason": reason, "message": message, "firstTimestamp": at, "lastTimestamp": at, "count": 3,
            "source": {"component": "replicaset-controller"},
        }
    )  # fmt: skip


__all__ = ["CONTROL", "FILES", "SECRET_WORD", "bulk", "deployment", "event", "furnish", "well"]
