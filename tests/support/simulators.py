"""A cluster with running simulators, and small manifests for it.

In: an embedded cluster. Out: functions that wait for states of its objects. Never: sleeps for a fixed time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from argosy.gitops.health.builtin import assess_builtin
from argosy.kube.client import Cluster
from argosy.kube.controller import run
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox import simulators
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.engine import LeapingClock
from support.loop_clock import until_still

POD, NAMESPACE = GroupKind("", "Pod"), "default"
DEPLOYMENT, REPLICA_SET = GroupKind("apps", "Deployment"), GroupKind("apps", "ReplicaSet")
STATEFUL_SET, JOB = GroupKind("apps", "StatefulSet"), GroupKind("batch", "Job")
DAEMON_SET, CRON_JOB = GroupKind("apps", "DaemonSet"), GroupKind("batch", "CronJob")
EVENT, NODE = GroupKind("", "Event"), GroupKind("", "Node")
CLAIM, VOLUME = GroupKind("", "PersistentVolumeClaim"), GroupKind("", "PersistentVolume")

# Installing the CRDs of OpenShift and KServe takes ten times as long as the rest; only tests that need them use WHOLE.
WHOLE = ""
CORE = "+".join(simulator.kind for simulator in simulators.DEFAULT_KINDS if simulator not in simulators.REQUIRED_CRDS)


class World:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def get(self, kind: GroupKind, name: str = "web") -> Manifest:
        return await self.cluster.get(key(kind, name)) or {"metadata": {}, "status": {}}

    async def pods(self, **labels: str) -> list[Manifest]:
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        return list((await self.cluster.list(POD, namespace=NAMESPACE, labels=selector)).items)

    async def all(self, kind: GroupKind) -> list[Manifest]:
        return list((await self.cluster.list(kind)).items)

    async def becomes(self, kind: GroupKind, is_so: Callable[[Manifest], Any], name: str = "web") -> Manifest:
        async with asyncio.timeout(HANG_SECONDS):
            while not _true(is_so, live := await self.get(kind, name)):
                await asyncio.sleep(0.01)
        return live

    async def pods_become(self, is_so: Callable[[list[Manifest]], Any], **labels: str) -> list[Manifest]:
        async with asyncio.timeout(HANG_SECONDS):
            while not _true(is_so, pods := await self.pods(**labels)):
                await asyncio.sleep(0.01)
        return pods

    async def patch(self, kind: GroupKind, patch: Any, name: str = "web") -> None:
        await self.cluster.patch(key(kind, name), patch)

    async def all_events(self) -> list[Manifest]:
        return list((await self.cluster.list(EVENT)).items)

    async def told(self, *texts: str) -> list[str]:
        """Wait until all texts occur in Events; return `reason: message` of every Event, oldest first."""
        async with asyncio.timeout(HANG_SECONDS):
            while True:
                events = sorted(await self.all_events(), key=lambda event: event["metadata"]["name"].rpartition(".")[2])
                messages = [f"{cluster_event['reason']}: {cluster_event['message']}" for cluster_event in events]
                if all(any(text in message for message in messages) for text in texts):
                    return messages
                await asyncio.sleep(0.01)

    async def settled(self) -> int:
        """Wait until nothing is written for a while; use it only to show that something does not happen."""
        assert isinstance(self.cluster, EmbeddedCluster)
        store = self.cluster.plane.store
        return await until_still(lambda: store.revision)


def _true(is_so: Callable[[Any], Any], value: Manifest | list[Manifest]) -> bool:
    """Evaluate the condition; a missing object or field counts as false."""
    try:
        return bool(is_so(value))
    except (KeyError, IndexError, StopIteration):
        return False


@contextlib.asynccontextmanager
async def simulated(cluster: Cluster, variant: str = CORE) -> AsyncIterator[World]:
    """Run the simulators of the sandbox: all of them (WHOLE), or those without CRDs (CORE)."""
    async with run_addons([simulators.make(variant)], cluster, on_failure=lambda: None):
        yield World(cluster)


@contextlib.asynccontextmanager
async def leaping(cluster: Cluster) -> AsyncIterator[tuple[World, LeapingClock]]:
    """Run the CORE simulators with a clock that the test moves."""
    addon, clock = simulators.make(CORE), LeapingClock()
    for manifest in addon.initial_manifests:
        await cluster.create(manifest)
    work = asyncio.create_task(run(addon.controllers, cluster, clock=clock))
    try:
        yield World(cluster), clock
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


def key(kind: GroupKind, name: str) -> ResourceKey:
    return ResourceKey(*kind, NAMESPACE, name)


def template(annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    metadata: Manifest = {"labels": {"app": "web"}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "example:1"}], **spec}}


def deployment(replicas: int = 1, annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    pods = {"selector": {"matchLabels": {"app": "web"}}, "template": template(annotations)}
    return build_manifest("apps/v1", "Deployment", {"replicas": replicas, **pods, **spec})


def pod(annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    manifest = build_manifest("v1", "Pod", template(**spec)["spec"])
    manifest["metadata"].update({"annotations": annotations or {}, "labels": {"app": "web"}})
    return manifest


def build_manifest(api_version: str, kind: str, spec: Manifest, name: str = "web") -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def health(manifest: Manifest) -> tuple[str, str]:
    """Return health and message by the built-in health checks of Argo CD."""
    assessment = assess_builtin(manifest)
    if assessment is None:
        return "", ""
    return str(assessment.health), assessment.message


def condition(manifest: Manifest, type_: str) -> Manifest:
    matching = (
        candidate for candidate in (manifest.get("status") or {}).get("conditions") or () if candidate["type"] == type_
    )
    return next(matching, {"status": "", "reason": "", "message": ""})


def fail(fault: str, **more: str) -> dict[str, str]:
    return {"sandbox.argosy.dev/fail": fault, **{f"sandbox.argosy.dev/{name}": is_ for name, is_ in more.items()}}
