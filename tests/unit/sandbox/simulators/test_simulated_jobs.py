"""Simulated Jobs on the embedded cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.simulators import JOB, POD, build_manifest, condition, fail, health, key, leaping, simulated, template

pytestmark = pytest.mark.anyio


def job(annotations: dict[str, str] | None = None, policy: str = "Never", **spec: Any) -> Manifest:
    return build_manifest("batch/v1", "Job", {"template": template(annotations, restartPolicy=policy), **spec})


def ended(live: Manifest) -> bool:
    return "True" in (condition(live, "Complete")["status"], condition(live, "Failed")["status"])


async def test_job_completes_healthy_and_then_writes_nothing(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(job())
        live = await world.becomes(JOB, ended)
        before = await world.settled()
        assert await world.settled() == before
        (only,) = await world.pods()
    assert health(live) == ("Healthy", "Reached expected number of succeeded pods (simulated by argosy)")
    assert live["status"]["succeeded"] == 1 and "failed" not in live["status"] and live["status"]["completionTime"]
    assert only["metadata"]["labels"]["job-name"] == "web"
    assert only["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] == live["metadata"]["uid"]


async def test_job_runs_for_the_annotated_duration(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(job({"sandbox.argosy.dev/run-for": "20m"}))
        live = await world.becomes(JOB, lambda manifest: manifest["status"]["ready"] == 1)
        assert (live["status"]["active"], health(live)[0]) == (1, "Progressing")
        clock.leap(20 * 60)
        live = await world.becomes(JOB, lambda manifest: ended(manifest) or clock.leap(1))
    assert health(live)[0] == "Healthy" and "active" not in live["status"]


async def test_failing_job_is_retried_up_to_its_backoff_limit_and_then_degraded(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(job(fail("Exit"), backoffLimit=1))
        live = await world.becomes(JOB, ended)
        assert len(await world.pods()) == 2
    assert health(live) == ("Degraded", "Job has reached the specified backoff limit (simulated by argosy)")
    assert live["status"]["failed"] == 2 and condition(live, "Failed")["reason"] == "BackoffLimitExceeded"


async def test_job_that_fails_once_succeeds_with_its_second_pod(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(job(fail("Exit", **{"fail-times": "1"})))
        live = await world.becomes(JOB, ended)
    assert (live["status"]["failed"], live["status"]["succeeded"], health(live)[0]) == (1, 1, "Healthy")


async def test_container_restarts_count_towards_the_backoff_limit(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(job(fail("Exit"), "OnFailure", backoffLimit=0))
        live = await world.becomes(JOB, ended)
        await world.pods_become(lambda pods: not pods)
    assert condition(live, "Failed")["reason"] == "BackoffLimitExceeded"


async def test_job_past_its_active_deadline_fails_and_its_pods_are_deleted(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(job({"sandbox.argosy.dev/run-for": "1h"}, activeDeadlineSeconds=1))
        live = await world.becomes(JOB, ended)
        await world.pods_become(lambda pods: not pods)
    assert condition(live, "Failed")["reason"] == "DeadlineExceeded" and health(live)[0] == "Degraded"
    assert live["status"]["failed"] == 1


async def test_deleted_pod_counts_as_a_job_failure(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(job({"sandbox.argosy.dev/run-for": "1h"}, backoffLimit=1))
        gone: list[str] = []
        for count in (1, 2):
            (only,) = await world.pods_become(
                lambda pods: (
                    [(pod["status"]["phase"], pod["metadata"]["uid"] in gone) for pod in pods] == [("Running", False)]
                )
            )
            gone.append(only["metadata"]["uid"])
            await world.becomes(
                JOB, lambda manifest: manifest["status"].get("active") == 1
            )  # its controller has seen the Pod
            await cluster.delete(key(POD, only["metadata"]["name"]))
            live = await world.becomes(JOB, lambda manifest, count=count: manifest["status"].get("failed") == count)  # type: ignore[misc]
        live = await world.becomes(JOB, ended)
    assert condition(live, "Failed")["reason"] == "BackoffLimitExceeded"


async def test_job_never_exceeds_its_parallelism(cluster: EmbeddedCluster) -> None:
    most = 0
    async with simulated(cluster) as world:
        await cluster.create(job({"sandbox.argosy.dev/run-for": "50ms"}, completions=5, parallelism=2))
        async with asyncio.timeout(HANG_SECONDS):
            while not ended(live := await world.get(JOB)):
                alive = [pod for pod in await world.pods() if pod["status"]["phase"] in ("Pending", "Running")]
                most = max(most, len(alive))
                await asyncio.sleep(0.002)
        assert len(await world.pods()) == 5
    assert most <= 2 and live["status"]["succeeded"] == 5


async def test_indexed_job_succeeds_once_per_index(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(job(completions=4, parallelism=4, completionMode="Indexed"))
        live = await world.becomes(JOB, ended)
        pods = await world.pods()
    indexes = [pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in pods]
    assert sorted(indexes) == ["0", "1", "2", "3"] and live["status"]["completedIndexes"] == "0-3"
    assert {"name": "JOB_COMPLETION_INDEX", "value": indexes[0]} in pods[0]["spec"]["containers"][0]["env"]


async def test_suspended_job_has_no_pods_until_it_is_resumed(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(job({"sandbox.argosy.dev/run-for": "1h"}, suspend=True))
        live = await world.becomes(JOB, lambda manifest: condition(manifest, "Suspended")["status"] == "True")
        assert health(live)[0] == "Suspended" and await world.pods() == []
        await world.patch(JOB, {"spec": {"suspend": False}})
        await world.pods_become(lambda pods: len(pods) == 1)
        await world.patch(JOB, {"spec": {"suspend": True}})
        await world.pods_become(lambda pods: not pods)
        live = await world.becomes(JOB, lambda manifest: condition(manifest, "Suspended")["status"] == "True")
        assert "startTime" not in live["status"] and "failed" not in live["status"]


async def test_finished_job_is_deleted_after_its_ttl(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(job(ttlSecondsAfterFinished=0))
        async with asyncio.timeout(HANG_SECONDS):
            while await cluster.get(key(JOB, "web")) or await world.pods():
                await asyncio.sleep(0.01)


async def test_job_managed_by_another_controller_is_left_alone(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(job(managedBy="example.com/other"))
        await world.settled()
        assert await world.pods() == [] and not (await world.get(JOB)).get("status")
