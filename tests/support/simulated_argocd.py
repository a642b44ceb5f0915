"""A simulated Argo CD: the StatefulSet of its controller, and a task that writes the status of Applications.

In: a cluster. Out: a scalable StatefulSet, and statuses. Never: syncs; writes Applications with skip-reconcile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from argosy.annotations import REFRESH, SKIP_RECONCILE
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

MANAGER: Final = "argocd-application-controller"
NAMED: Final = {"app.kubernetes.io/name": MANAGER}
CONTAINERS: Final = {"containers": [{"name": MANAGER, "image": "quay.io/argoproj/argocd:v3.1.0"}]}
LABELS: Final = {
    **NAMED,
    "app.kubernetes.io/component": "application-controller",
    "app.kubernetes.io/part-of": "argocd",
}


def controller(namespace: str = "argocd", replicas: int = 1, **metadata: Any) -> Manifest:
    """Return the StatefulSet of the application controller, as in the manifests of Argo CD."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": MANAGER, "namespace": namespace, "labels": LABELS, **metadata},
        "spec": {
            "replicas": replicas,
            "serviceName": MANAGER,
            "selector": {"matchLabels": NAMED},
            "template": {"metadata": {"labels": NAMED}, "spec": CONTAINERS},
        },
    }


def pod(namespace: str = "argocd") -> Manifest:
    """Return the first Pod of the StatefulSet."""
    metadata = {"name": f"{MANAGER}-0", "namespace": namespace, "labels": NAMED}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": CONTAINERS}


async def scale(cluster: Cluster, replicas: int, namespace: str = "argocd") -> None:
    await cluster.patch(ResourceKey("apps", "StatefulSet", namespace, MANAGER), {"spec": {"replicas": replicas}})


class Controller:
    """Writes a status to every Application without skip-reconcile that has no status or requests a refresh."""

    def __init__(self, cluster: Cluster, resources: list[dict[str, Any]]) -> None:
        self._cluster, self._resources = cluster, resources
        self.looks: dict[str, int] = {}

    async def run(self) -> None:
        while True:
            listing = await self._cluster.list(APPLICATION)
            for application in listing.items:
                await self._look(application)
            async for event in self._cluster.watch(APPLICATION, since=listing.version):
                if event.type in ("ADDED", "MODIFIED"):
                    await self._look(event.manifest)

    async def _look(self, app: Manifest) -> None:
        annotations = app["metadata"].get("annotations") or {}
        is_known = (app.get("status") or {}).get("sync")
        if annotations.get(SKIP_RECONCILE) == "true" or (is_known and REFRESH not in annotations):
            return
        name = app["metadata"]["name"]
        self.looks[name] = self.looks.get(name, 0) + 1
        status = {
            "sync": {"status": "Synced", "revision": "0" * 40},
            "health": {"status": "Healthy"},
            "resources": self._resources,
        }
        patch = {"metadata": {"annotations": {REFRESH: None}}, "status": status}
        await self._cluster.patch(key_of(app), patch, manager=MANAGER)


@asynccontextmanager
async def at_work(cluster: Cluster, resources: list[dict[str, Any]] | None = None) -> AsyncIterator[Controller]:
    """Create the StatefulSet and run the controller task."""
    await cluster.create(controller())
    simulated = Controller(cluster, resources or [])
    work = asyncio.create_task(simulated.run())
    try:
        yield simulated
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
