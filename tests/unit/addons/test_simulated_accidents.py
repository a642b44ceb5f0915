"""Simulators that are killed between any two writes, or whose cluster answers badly: what they make is the same."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest
from simulated_world import deployment, health, made, template
from wiped_server import IS_ASKED_FOR

from argosy.addons.simulators import make
from argosy.apiserver.embedded import EmbeddedCluster
from argosy.cluster import Cluster
from argosy.model.errors import Conflict, TransientError
from argosy.model.manifest import Manifest, key_of
from argosy.model.names import GroupKind
from argosy.runtime import run

pytestmark = [pytest.mark.anyio, pytest.mark.prove]
WRITES = ("create", "patch", "replace", "delete", "apply")
COUNTED = ("Pod", "PersistentVolumeClaim", "PersistentVolume"), ("ReplicaSet", "ControllerRevision")
STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


class Mortal:
    """A cluster for controllers that die at their nth write: just before it, or just after."""

    def __init__(self, cluster: Cluster, dies_at: int, *, after: bool) -> None:
        self._cluster, self._dies_at, self._after = cluster, dies_at, after
        self._writes = 0
        self.died = asyncio.Event()

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self._cluster, verb)
        return method if verb not in WRITES else self._watched(method)

    def _watched(self, method: Any) -> Any:
        async def call(*args: Any, **named: Any) -> Any:
            if _is_event(args[0]):  # they may be lost, and told twice
                return await method(*args, **named)
            self._writes += 1
            number = self._writes
            if number < self._dies_at or (number == self._dies_at and self._after):
                answer = await method(*args, **named)
                if number < self._dies_at:
                    return answer
            self.died.set()
            await asyncio.Event().wait()  # the dead do not go on

        return call


def _is_event(about: Any) -> bool:
    return bool(about["kind"] == "Event" if isinstance(about, dict) else about.kind == "Event")


class Moody:
    """A cluster that sometimes fails, before it has written or after."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster, self._random = cluster, random.Random(seed)

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self._cluster, verb)
        if verb not in WRITES:
            return method

        async def call(*args: Any, **named: Any) -> Any:
            mood = self._random.random()
            if mood < 0.1:
                raise TransientError("the network is gone")
            if mood < 0.2:
                raise Conflict("somebody was faster")
            answer = await method(*args, **named)
            if mood < 0.3:
                raise TransientError("the answer is lost")
            return answer

        return call


def wanted() -> list[Manifest]:
    selector = {"selector": {"matchLabels": {"app": "web"}}}
    claims = [{"metadata": {"name": "data"}, "spec": STORAGE}]
    labelled = {**template(), "metadata": {"labels": {"app": "db"}}}
    set_ = {"replicas": 2, "serviceName": "x", "template": labelled, "volumeClaimTemplates": claims}
    daemon = {**template(), "metadata": {"labels": {"app": "daemon"}}}
    about = {"selector": {"matchLabels": {"app": "daemon"}}, "template": daemon}
    return [
        deployment(2),
        made("apps/v1", "DaemonSet", about, "daemon"),
        made("v1", "Service", {"selector": {"app": "web"}, "ports": [{"port": 80}]}, "web"),
        made("batch/v1", "Job", {"completions": 2, "template": template(restartPolicy="Never")}, "job"),
        made("apps/v1", "StatefulSet", {**selector, **set_, "selector": {"matchLabels": {"app": "db"}}}, "db"),
    ]


async def prepared(cluster: EmbeddedCluster) -> None:
    for manifest in [*make("").first, *wanted()]:
        await cluster.create(manifest)


async def all_well(cluster: EmbeddedCluster) -> bool:
    found = [await cluster.get(key_of(each)) for each in wanted()]
    return all(each is not None and _is_seen(each) and health(each)[0] == "Healthy" for each in found)


def _is_seen(live: Manifest) -> bool:
    return bool((live.get("status") or {}).get("observedGeneration", live["kind"] in ("Job", "Service")))


async def until_well(cluster: EmbeddedCluster, through: Any) -> None:
    work = asyncio.create_task(run(make("").controllers, through, grace=0.0))
    async with asyncio.timeout(60):
        while not await all_well(cluster):
            await asyncio.sleep(0.01)
    await stop(work)


async def stop(work: asyncio.Task[None]) -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


async def made_of(cluster: EmbeddedCluster) -> Counter[str]:
    core, apps = COUNTED
    found: Counter[str] = Counter()
    for group, kinds in (("", core), ("apps", apps)):
        for kind in kinds:
            found[kind] = len((await cluster.list(GroupKind(group, kind))).items)
    return found


EXPECTED = Counter(Pod=7, PersistentVolumeClaim=2, PersistentVolume=2, ReplicaSet=1, ControllerRevision=2)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("first", range(1, 5))
async def test_whoever_is_killed_at_a_write_makes_nothing_twice_after_a_restart(first: int, after: bool) -> None:
    for number in range(first, 56, 4 if IS_ASKED_FOR else 8):
        async with EmbeddedCluster.open() as cluster:
            await prepared(cluster)
            mortal = Mortal(cluster, number, after=after)
            work = asyncio.create_task(run(make("").controllers, mortal, grace=0.0))  # type: ignore[arg-type]
            async with asyncio.timeout(30):
                while not mortal.died.is_set() and not await all_well(cluster):  # the last writes are not always needed
                    await asyncio.sleep(0.005)
            await stop(work)
            await until_well(cluster, cluster)
            assert await made_of(cluster) == EXPECTED, number


@pytest.mark.parametrize("seed", range(12 if IS_ASKED_FOR else 4))
async def test_a_cluster_that_answers_badly_leads_to_the_same(seed: int) -> None:
    async with EmbeddedCluster.open() as cluster:
        await prepared(cluster)
        await until_well(cluster, Moody(cluster, seed))
        assert await made_of(cluster) == EXPECTED
