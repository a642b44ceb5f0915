"""Simulated workloads become ready although the clock is set while they start."""

from __future__ import annotations

import pytest

from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.pod_counts import is_ready
from support.simulators import DEPLOYMENT, POD, deployment, leaping, pod

pytestmark = pytest.mark.anyio
DAY = 86400.0
READY_AFTER = {"sandbox.argosy.dev/ready-after": "300s"}


@pytest.mark.parametrize("jump", [-30 * DAY, -3600.0, 3600.0, 30 * DAY])
async def test_starting_pod_becomes_ready_after_a_clock_jump(jump: float) -> None:
    async with EmbeddedCluster.open() as cluster, leaping(cluster) as (world, clock):
        clock.leap(60 * DAY)
        await cluster.create(pod(READY_AFTER))
        await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Running")
        clock.set_by(jump)
        await world.patch(POD, {"metadata": {"labels": {"seen": "again"}}})
        await world.settled()
        clock.leap(301)
        await world.becomes(POD, is_ready)


async def test_deployment_becomes_available_after_the_clock_is_set_back() -> None:
    async with EmbeddedCluster.open() as cluster, leaping(cluster) as (world, clock):
        clock.leap(60 * DAY)
        await cluster.create(deployment(annotations={}, minReadySeconds=30))
        await world.becomes(DEPLOYMENT, lambda manifest: manifest["status"]["readyReplicas"] == 1)
        clock.set_by(-DAY)
        await world.settled()
        clock.leap(31)
        await world.patch(DEPLOYMENT, {"metadata": {"labels": {"seen": "again"}}})
        await world.becomes(DEPLOYMENT, lambda manifest: manifest["status"]["availableReplicas"] == 1)
