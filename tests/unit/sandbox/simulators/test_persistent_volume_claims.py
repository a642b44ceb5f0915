"""Simulated binding of PersistentVolumeClaims on the embedded cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.simulators import CLAIM, POD, VOLUME, build_manifest, condition, health, key, pod, simulated

pytestmark = pytest.mark.anyio


def claim(size: str = "1Gi", **spec: Any) -> Manifest:
    base_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return build_manifest("v1", "PersistentVolumeClaim", {**base_spec, **spec})


def volume(name: str, size: str, **spec: Any) -> Manifest:
    about = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "hostPath": {"path": "/nowhere"}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {**about, **spec}}


def is_bound(live: Manifest) -> bool:
    return bool(live["status"]["phase"] == "Bound")


async def test_pvc_of_the_default_class_is_bound_to_a_new_volume(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(claim())
        live = await world.becomes(CLAIM, is_bound)
        before = await world.settled()
        assert await world.settled() == before
        (made_for_it,) = await world.all(VOLUME)
    assert live["spec"]["storageClassName"] == "standard" and live["status"]["capacity"] == {"storage": "1Gi"}
    assert made_for_it["spec"]["claimRef"]["uid"] == live["metadata"]["uid"]
    assert made_for_it["status"]["phase"] == "Bound" and health(live)[0] == "Healthy"


async def test_wait_for_first_consumer_pvc_without_a_pod_is_pending(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(claim(storageClassName="standard-wait"))
        await world.settled()
        live = await world.get(CLAIM)
        assert live["status"]["phase"] == "Pending" and health(live)[0] == "Progressing"
        assert await world.all(VOLUME) == []


async def test_pvc_is_bound_when_its_storage_class_is_created(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(claim(storageClassName="late"))
        await world.settled()
        assert (await world.get(CLAIM))["status"]["phase"] == "Pending"
        metadata = {"name": "late"}
        late = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "provisioner": "a.b/c"}
        await cluster.create(late)
        await world.becomes(CLAIM, is_bound)


async def test_pvc_binds_the_smallest_sufficient_volume(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        for name, size in (("large", "10Gi"), ("small", "512Mi"), ("right", "2Gi")):
            await cluster.create(volume(name, size))
        await cluster.create(claim(storageClassName=""))
        live = await world.becomes(CLAIM, is_bound)
        assert live["spec"]["volumeName"] == "right" and live["status"]["capacity"] == {"storage": "2Gi"}


async def test_pvc_binds_a_volume_that_is_created_later(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(claim(storageClassName=""))
        await world.settled()
        await cluster.create(volume("late", "1Gi"))
        await world.becomes(CLAIM, is_bound)


async def test_bound_pvc_can_be_expanded(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(claim())
        await world.becomes(CLAIM, is_bound)
        await world.patch(CLAIM, {"spec": {"resources": {"requests": {"storage": "3Gi"}}}})
        await world.becomes(CLAIM, lambda pvc: pvc["status"]["capacity"] == {"storage": "3Gi"})


@pytest.mark.parametrize(("policy", "left"), [("Delete", []), ("Retain", ["Released"])])
async def test_reclaim_policy_decides_what_happens_to_the_volume(
    cluster: EmbeddedCluster, policy: str, left: list[str]
) -> None:
    async with simulated(cluster) as world:
        await cluster.create(claim())
        live = await world.becomes(CLAIM, is_bound)
        name = ResourceKey("", "PersistentVolume", "", live["spec"]["volumeName"])
        await cluster.patch(name, {"spec": {"persistentVolumeReclaimPolicy": policy}})
        await cluster.delete(key(CLAIM, "web"))
        async with asyncio.timeout(HANG_SECONDS):
            while [live_volume["status"]["phase"] for live_volume in await world.all(VOLUME)] != left:
                await asyncio.sleep(0.01)


async def test_pvc_in_use_is_deleted_after_its_pod(cluster: EmbeddedCluster) -> None:
    using = pod(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "web"}}])
    async with simulated(cluster) as world:
        await cluster.create(claim(storageClassName="standard-wait"))
        await cluster.create(using)
        await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Running")
        await cluster.delete(key(CLAIM, "web"))
        await world.settled()
        assert (await world.get(CLAIM))["metadata"]["deletionTimestamp"]
        await cluster.create({**using, "metadata": {**using["metadata"], "name": "late"}})
        late = await world.becomes(
            POD, lambda manifest: condition(manifest, "PodScheduled")["status"] == "False", "late"
        )
        assert 'persistentvolumeclaim "web" is being deleted' in condition(late, "PodScheduled")["message"]
        await cluster.delete(key(POD, "web"))
        async with asyncio.timeout(HANG_SECONDS):
            while await cluster.get(key(CLAIM, "web")) or await world.all(VOLUME):
                await asyncio.sleep(0.01)


async def test_pvc_whose_volume_is_deleted_is_lost(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(claim())
        live = await world.becomes(CLAIM, is_bound)
        await cluster.delete(ResourceKey("", "PersistentVolume", "", live["spec"]["volumeName"]))
        live = await world.becomes(CLAIM, lambda pvc: pvc["status"]["phase"] == "Lost")
        assert health(live)[0] == "Degraded"


async def test_storage_class_without_provisioner_creates_no_volume(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        storage_classes = await world.all(GroupKind("storage.k8s.io", "StorageClass"))
        assert {storage_class["metadata"]["name"] for storage_class in storage_classes} == {"standard", "standard-wait"}
        local = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
        }
        await cluster.create(local)
        await cluster.create(claim(storageClassName="local"))
        await world.settled()
        assert await world.all(VOLUME) == []
