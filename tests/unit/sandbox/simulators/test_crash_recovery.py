"""Simulators that are killed at a write, or whose API server fails at random, still create the same objects."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from argosy.kube.controller import run
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import make
from support.deadlines import HANG_SECONDS
from support.failing_clients import Moody, Mortal
from support.proof_scale import is_full
from support.simulators import CORE, build_manifest, deployment, health, template

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
COUNTED = ("Pod", "PersistentVolumeClaim", "PersistentVolume"), ("ReplicaSet", "ControllerRevision")
STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
WRITES = 56  # writes until every object is healthy
SEEDS = 12 if is_full() else 2


def build_manifests() -> list[Manifest]:
    selector = {"selector": {"matchLabels": {"app": "web"}}}
    claims = [{"metadata": {"name": "data"}, "spec": STORAGE}]
    labelled = {**template(), "metadata": {"labels": {"app": "db"}}}
    set_ = {"replicas": 2, "serviceName": "x", "template": labelled, "volumeClaimTemplates": claims}
    daemon = {**template(), "metadata": {"labels": {"app": "daemon"}}}
    about = {"selector": {"matchLabels": {"app": "daemon"}}, "template": daemon}
    return [
        deployment(2),
        build_manifest("apps/v1", "DaemonSet", about, "daemon"),
        build_manifest("v1", "Service", {"selector": {"app": "web"}, "ports": [{"port": 80}]}, "web"),
        build_manifest("batch/v1", "Job", {"completions": 2, "template": template(restartPolicy="Never")}, "job"),
        build_manifest(
            "apps/v1", "StatefulSet", {**selector, **set_, "selector": {"matchLabels": {"app": "db"}}}, "db"
        ),
    ]


async def prepared(cluster: EmbeddedCluster) -> None:
    for manifest in [*make(CORE).initial_manifests, *build_manifests()]:
        await cluster.create(manifest)


async def all_well(cluster: EmbeddedCluster) -> bool:
    live_manifests = [await cluster.get(key_of(manifest)) for manifest in build_manifests()]
    return all(live is not None and _is_seen(live) and health(live)[0] == "Healthy" for live in live_manifests)


def _is_seen(live: Manifest) -> bool:
    return bool((live.get("status") or {}).get("observedGeneration", live["kind"] in ("Job", "Service")))


async def until_well(cluster: EmbeddedCluster, through: Any) -> None:
    work = asyncio.create_task(run(make(CORE).controllers, through, grace_seconds=0.0))
    async with asyncio.timeout(HANG_SECONDS):
        while not await all_well(cluster):
            await asyncio.sleep(0.01)
    await stop(work)


async def stop(work: asyncio.Task[None]) -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


async def made_of(cluster: EmbeddedCluster) -> Counter[str]:
    core, apps = COUNTED
    counts: Counter[str] = Counter()
    for group, kinds in (("", core), ("apps", apps)):
        for kind in kinds:
            counts[kind] = len((await cluster.list(GroupKind(group, kind))).items)
    return counts


EXPECTED = Counter(Pod=7, PersistentVolumeClaim=2, PersistentVolume=2, ReplicaSet=1, ControllerRevision=2)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("first", range(1, 5))
async def test_simulators_killed_at_a_write_create_no_duplicates_after_a_restart(first: int, after: bool) -> None:
    for number in range(first, WRITES, 4) if is_full() else [13 * first]:
        async with EmbeddedCluster.open() as cluster:
            await prepared(cluster)
            mortal = Mortal(cluster, number, after=after)
            work = asyncio.create_task(run(make(CORE).controllers, mortal, grace_seconds=0.0))
            async with asyncio.timeout(HANG_SECONDS):
                while not mortal.died.is_set() and not await all_well(cluster):  # the last writes do not always happen
                    await asyncio.sleep(0.005)
            await stop(work)
            await until_well(cluster, cluster)
            assert await made_of(cluster) == EXPECTED, number


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_simulators_create_the_same_objects_on_a_failing_api_server(seed: int) -> None:
    async with EmbeddedCluster.open() as cluster:
        await prepared(cluster)
        await until_well(cluster, Moody(cluster, seed))
        assert await made_of(cluster) == EXPECTED
