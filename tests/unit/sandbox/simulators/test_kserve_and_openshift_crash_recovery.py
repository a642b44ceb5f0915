"""KServe and OpenShift simulators that are killed at a write, or whose API server fails at random, still finish."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.kube.controller import run
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import INFERENCE_SERVICE, ROUTE
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import build_addon
from support.deadlines import HANG_SECONDS
from support.failing_clients import Moody, Mortal
from support.serving_manifests import BUILD, BUILD_CONFIG, MODEL_KINDS, STREAM, build_config, model, runtime, stream
from support.simulators import DEPLOYMENT, POD, condition, key
from support.tiers import IN_TEST_ALL

pytestmark = pytest.mark.anyio
KINDS = (*MODEL_KINDS, BUILD_CONFIG, BUILD, STREAM)
EXPECTED = {DEPLOYMENT: 1, POD: 1, ROUTE: 1, BUILD: 1, GroupKind("", "Service"): 2}
START = "sandbox.argosy.dev/start-build"
WRITES = [2, 6, 13, *(pytest.param(write_count, marks=IN_TEST_ALL) for write_count in (1, 3, 4, 5, 8, 10, 17, 22))]
SEEDS = [0, *(pytest.param(seed, marks=IN_TEST_ALL) for seed in (1, 2))]


async def prepared(cluster: EmbeddedCluster) -> None:
    addon = build_addon(KINDS)
    async with run_addons([addon], cluster, on_failure=lambda: None):
        pass  # install the kinds and the initial objects; no workload exists yet
    with cluster.register_admission(addon.admission_handlers):
        for manifest in (stream(), build_config({START: "now"}), runtime(), model()):
            await cluster.create(manifest)


async def is_done(cluster: EmbeddedCluster) -> bool:
    live = await cluster.get(key(INFERENCE_SERVICE, "web")) or {}
    builds = (await cluster.list(BUILD)).items
    done = [build for build in builds if (build.get("status") or {}).get("phase") == "Complete"]
    config = await cluster.get(key(BUILD_CONFIG, "web")) or {}
    again = START in (config["metadata"].get("annotations") or {})
    return condition(live, "Ready")["status"] == "True" and bool(done) and len(done) == len(builds) and not again


async def finish(cluster: EmbeddedCluster, through: Any) -> None:
    work = asyncio.create_task(run(build_addon(KINDS).controllers, through, grace_seconds=0.0))
    try:
        async with asyncio.timeout(HANG_SECONDS):
            while not await is_done(cluster):
                await asyncio.sleep(0.01)
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def counted(cluster: EmbeddedCluster) -> dict[GroupKind, int]:
    return {kind: len((await cluster.list(kind)).items) for kind in EXPECTED}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", WRITES)
async def test_simulators_killed_at_a_write_create_no_duplicates(number: int, after: bool) -> None:
    async with EmbeddedCluster.open() as cluster:
        await prepared(cluster)
        mortal = Mortal(cluster, number, after=after)
        work = asyncio.create_task(run(build_addon(KINDS).controllers, mortal, grace_seconds=0.0))
        async with asyncio.timeout(HANG_SECONDS):
            while not mortal.died.is_set() and not await is_done(cluster):
                await asyncio.sleep(0.005)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await finish(cluster, cluster)
        assert await counted(cluster) == EXPECTED


@pytest.mark.parametrize("seed", SEEDS)
async def test_simulators_finish_on_an_api_server_that_sometimes_fails(seed: int) -> None:
    async with EmbeddedCluster.open() as cluster:
        await prepared(cluster)
        await finish(cluster, Moody(cluster, seed))
        assert (await counted(cluster))[DEPLOYMENT] == 1
