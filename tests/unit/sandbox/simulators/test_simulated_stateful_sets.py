"""Simulated StatefulSets on the embedded cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.simulators import CLAIM, STATEFUL_SET, build_manifest, condition, fail, health, key, simulated, template

pytestmark = pytest.mark.anyio
REVISIONS = GroupKind("apps", "ControllerRevision")


def stateful_set(replicas: int = 1, annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    pods = {"selector": {"matchLabels": {"app": "web"}}, "template": template(annotations), "serviceName": "web"}
    return build_manifest("apps/v1", "StatefulSet", {"replicas": replicas, **pods, **spec})


def image(name: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": name}]}}}}


def is_done(live: Manifest) -> bool:
    status = live["status"]
    is_seen = status["observedGeneration"] == live["metadata"]["generation"]
    return is_seen and health(live)[0] == "Healthy" and status["currentRevision"] == status["updateRevision"]


def counts(live: Manifest) -> list[int]:
    return [live["status"][field] for field in ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas")]


def images(pods: list[Manifest]) -> list[str]:
    pods = sorted(pods, key=lambda pod: pod["metadata"]["name"])
    return [live_pod["spec"]["containers"][0]["image"] for live_pod in pods]


STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CLAIMS = [{"metadata": {"name": "data"}, "spec": STORAGE}]


async def test_pods_start_in_order_with_their_own_pvcs(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        slow = {"sandbox.argosy.dev/ready-after": "60ms"}
        await cluster.create(stateful_set(3, slow, volumeClaimTemplates=CLAIMS))
        async with asyncio.timeout(HANG_SECONDS):
            while len(pods := await world.pods()) < 3:
                ready = [pod for pod in pods if condition(pod, "Ready")["status"] == "True"]
                assert len(pods) <= len(ready) + 1
                await asyncio.sleep(0.002)
        live = await world.becomes(STATEFUL_SET, is_done)
        before = await world.settled()
        assert await world.settled() == before
        names = sorted(pod["metadata"]["name"] for pod in await world.pods())
        claims = {claim["metadata"]["name"]: claim["status"]["phase"] for claim in await world.all(CLAIM)}
    assert names == ["web-0", "web-1", "web-2"]
    assert claims == {"data-web-0": "Bound", "data-web-1": "Bound", "data-web-2": "Bound"}
    assert counts(live) == [3, 3, 3, 3]


async def test_rolling_update_goes_from_the_last_pod_to_the_first(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(stateful_set(3))
        await world.becomes(STATEFUL_SET, is_done)
        await world.patch(STATEFUL_SET, image("example:2"))
        async with asyncio.timeout(HANG_SECONDS):
            while (current_images := images(await world.pods())) != ["example:2"] * 3:
                assert current_images == sorted(current_images)
                await asyncio.sleep(0.002)
        await world.becomes(STATEFUL_SET, is_done)
        assert sorted(revision["revision"] for revision in await world.all(REVISIONS)) == [1, 2]


async def test_partition_keeps_lower_pods_at_the_old_revision(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(stateful_set(3))
        await world.becomes(STATEFUL_SET, is_done)
        held = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}
        await world.patch(STATEFUL_SET, {"spec": {**image("example:2")["spec"], **held}})
        await world.pods_become(lambda pods: images(pods) == ["example:1", "example:1", "example:2"])
        live = await world.becomes(STATEFUL_SET, lambda manifest: counts(manifest) == [3, 3, 2, 1])
        assert health(live) == ("Healthy", "partitioned roll out complete: 1 new pods have been updated...")
        first = next(pod for pod in await world.pods() if pod["metadata"]["name"] == "web-0")
        await cluster.delete(key(GroupKind("", "Pod"), "web-0"))

        def is_back(pods: list[Manifest]) -> bool:
            uids = {pod["metadata"]["uid"] for pod in pods}
            return len(pods) == 3 and first["metadata"]["uid"] not in uids

        assert images(await world.pods_become(is_back)) == ["example:1", "example:1", "example:2"]
        await world.patch(STATEFUL_SET, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        await world.becomes(STATEFUL_SET, is_done)
        assert images(await world.pods()) == ["example:2"] * 3


async def test_scale_down_removes_the_last_pods_and_keeps_their_pvcs(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(stateful_set(3, volumeClaimTemplates=CLAIMS))
        await world.becomes(STATEFUL_SET, is_done)
        await world.patch(STATEFUL_SET, {"spec": {"replicas": 1}})
        pods = await world.pods_become(lambda pods: len(pods) == 1)
        assert pods[0]["metadata"]["name"] == "web-0" and len(await world.all(CLAIM)) == 3
        await world.becomes(STATEFUL_SET, lambda manifest: manifest["status"]["replicas"] == 1)


async def test_pvc_retention_policy_deletes_pvcs_on_scale_down_and_deletion(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        policy = {"whenScaled": "Delete", "whenDeleted": "Delete"}
        manifest = stateful_set(2, volumeClaimTemplates=CLAIMS, persistentVolumeClaimRetentionPolicy=policy)
        await cluster.create(manifest)
        await world.becomes(STATEFUL_SET, is_done)
        await world.patch(STATEFUL_SET, {"spec": {"replicas": 1}})
        async with asyncio.timeout(HANG_SECONDS):
            while [claim["metadata"]["name"] for claim in await world.all(CLAIM)] != ["data-web-0"]:
                await asyncio.sleep(0.01)
        await cluster.delete(key(STATEFUL_SET, "web"))
        async with asyncio.timeout(HANG_SECONDS):
            while await world.all(CLAIM) or await world.all(GroupKind("", "PersistentVolume")):
                await asyncio.sleep(0.01)


async def test_not_ready_first_pod_blocks_the_others(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(stateful_set(2, fail("NotReady")))
        await world.pods_become(lambda pods: len(pods) == 1)
        await world.settled()
        live = await world.get(STATEFUL_SET)
        assert len(await world.pods()) == 1 and health(live) == ("Progressing", "Waiting for 2 pods to be ready...")


async def test_parallel_pod_management_does_not_wait(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(stateful_set(3, fail("NotReady"), podManagementPolicy="Parallel"))
        await world.pods_become(lambda pods: len(pods) == 3)


async def test_on_delete_strategy_updates_only_deleted_pods(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(stateful_set(2, updateStrategy={"type": "OnDelete"}))
        await world.becomes(STATEFUL_SET, lambda manifest: manifest["status"]["readyReplicas"] == 2)
        await world.patch(STATEFUL_SET, image("example:2"))
        await world.settled()
        assert images(await world.pods()) == ["example:1"] * 2
        await cluster.delete(key(GroupKind("", "Pod"), "web-0"))
        await world.pods_become(lambda pods: images(pods) == ["example:2", "example:1"])
