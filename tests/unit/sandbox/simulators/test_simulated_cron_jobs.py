"""Simulated CronJobs, with a clock that can be advanced."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.cron_due_times import compute_due_times
from support.deadlines import HANG_SECONDS
from support.simulators import CRON_JOB, JOB, World, build_manifest, condition, fail, leaping, simulated, template

HOUR = 3600


def cron_job(schedule: str = "", annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    """Hourly by default, due half an hour from now, so that only an advanced clock reaches the next run."""
    schedule = schedule or f"{(datetime.now(UTC).minute + 30) % 60} * * * *"
    job = {"spec": {"template": template(annotations, restartPolicy="Never")}}
    return build_manifest("batch/v1", "CronJob", {"schedule": schedule, "jobTemplate": job, **spec})


async def jobs(world: World) -> list[Manifest]:
    return sorted(await world.all(JOB), key=lambda job: str(job["metadata"]["name"]))


async def jobs_become(world: World, count: int, done: int) -> list[Manifest]:
    def is_so(live_jobs: list[Manifest]) -> bool:
        return len(live_jobs) == count and sum(1 for job in live_jobs if condition(job, "Complete")["status"]) == done

    async with asyncio.timeout(HANG_SECONDS):
        while not is_so(current_jobs := await jobs(world)):
            await asyncio.sleep(0.01)
    return current_jobs


@pytest.mark.anyio
async def test_cron_job_runs_hourly_and_keeps_the_history_limit(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(cron_job(successfulJobsHistoryLimit=2))
        names: set[str] = set()
        for number in (1, 2, 3):
            clock.leap(HOUR)
            live = await world.becomes(
                CRON_JOB,
                lambda manifest, names=names: manifest["status"]["lastScheduleTime"] not in names,  # type: ignore[misc]
            )
            names.add(live["status"]["lastScheduleTime"])
            current_jobs = await jobs_become(world, min(number, 2), min(number, 2))
        await world.becomes(
            CRON_JOB, lambda manifest: manifest["status"]["lastSuccessfulTime"] and not manifest["status"].get("active")
        )
        messages = await world.told(
            "SuccessfulDelete", "SawCompletedJob: Saw completed job: web-", "condition: Complete"
        )
    assert len(names) == 3
    scheduled = current_jobs[-1]["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    minute = int(datetime.fromisoformat(scheduled).timestamp()) // 60
    assert current_jobs[-1]["metadata"]["name"] == f"web-{minute}"
    assert sum(message.startswith("SuccessfulCreate: Created job web-") for message in messages) == 3


@pytest.mark.anyio
async def test_suspended_cron_job_creates_no_job_until_it_is_resumed(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(cron_job(suspend=True))
        await world.settled()
        clock.leap(2 * HOUR)
        await world.settled()
        assert await jobs(world) == []
        await world.patch(CRON_JOB, {"spec": {"suspend": False}})
        await jobs_become(world, 1, 1)


@pytest.mark.anyio
@pytest.mark.parametrize(("policy", "count"), [("Allow", 2), ("Forbid", 1), ("Replace", 1)])
async def test_concurrency_policy_decides_about_a_running_job(
    cluster: EmbeddedCluster, policy: str, count: int
) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(cron_job(annotations={"sandbox.argosy.dev/run-for": "100h"}, concurrencyPolicy=policy))
        await world.settled()
        clock.leap(HOUR)
        live = await world.becomes(CRON_JOB, lambda manifest: len(manifest["status"]["active"]) == 1)
        first = live["status"]["active"][0]["name"]
        clock.leap(HOUR)
        if policy == "Forbid":
            await world.told("JobAlreadyActive: Not starting job because prior execution is running")
        else:
            await world.becomes(
                CRON_JOB,
                lambda manifest: (
                    len(manifest["status"]["active"]) == count and manifest["status"]["active"][-1]["name"] != first
                ),
            )
        current_jobs = await jobs_become(world, count, 0)
    assert (first in {job["metadata"]["name"] for job in current_jobs}) == (policy != "Replace")


@pytest.mark.anyio
async def test_fault_annotation_on_the_cron_job_reaches_its_pods(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        manifest = cron_job()
        manifest["metadata"]["annotations"] = fail("Exit")
        manifest["spec"]["jobTemplate"]["spec"]["backoffLimit"] = 0
        await cluster.create(manifest)
        await world.settled()
        clock.leap(HOUR)
        live = await world.becomes(CRON_JOB, lambda live_cron_job: live_cron_job["status"]["lastScheduleTime"])
        await world.told("SawCompletedJob", "condition: Failed")
        (job,) = await jobs(world)
    assert condition(job, "Failed")["reason"] == "BackoffLimitExceeded" and live


@pytest.mark.anyio
async def test_cron_job_that_is_not_due_writes_nothing(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(cron_job("0 0 1 1 *"))
        before = await world.settled()
        assert await world.settled() == before


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize(
    ("schedule", "spec", "last", "missed", "upcoming"),
    [
        ("*/10 * * * *", {}, "2026-05-01T10:20:00Z", 2, "2026-05-01T10:30:00Z"),
        ("0 * * * *", {}, None, 0, "2026-05-01T11:00:00Z"),
        ("*/10 * * * *", {"startingDeadlineSeconds": 60}, None, 0, "2026-05-01T10:30:00Z"),
        ("20 12 * * *", {"timeZone": "Europe/Berlin"}, "2026-05-01T10:20:00Z", 1, "2026-05-02T10:20:00Z"),
        ("@every 10m", {}, "2026-05-01T10:25:00Z", 2, "2026-05-01T10:35:00Z"),
        ("TZ=Asia/Kolkata 45 15 * * *", {}, "2026-05-01T10:15:00Z", 1, "2026-05-02T10:15:00Z"),
    ],
)
def test_due_time_is_the_last_missed_run(
    schedule: str, spec: dict[str, Any], last: str | None, missed: int, upcoming: str
) -> None:
    live = cron_job(schedule, **spec)
    live["metadata"]["creationTimestamp"] = "2026-05-01T10:05:00Z"
    due_times = compute_due_times(live, parse_time("2026-05-01T10:25:00Z"))
    assert (due_times.last_missed, due_times.missed_count, due_times.next_time) == (
        parse_time(last) if last else None,
        missed,
        parse_time(upcoming),
    )


def test_year_of_missed_runs_yields_only_the_last_one() -> None:
    live = cron_job("* * * * *")
    live["metadata"]["creationTimestamp"] = "2025-05-01T10:05:00Z"
    due_times = compute_due_times(live, parse_time("2026-05-01T10:25:30Z"))
    assert due_times.last_missed == parse_time("2026-05-01T10:25:00Z") and due_times.missed_count > 100


@pytest.mark.parametrize("spec", [{"schedule": "often"}, {"schedule": "* * * * *", "timeZone": "Nowhere/Land"}])
def test_invalid_schedule_or_time_zone_error_says_what_to_write(spec: dict[str, str]) -> None:
    live = {"metadata": {"creationTimestamp": "2025-05-01T10:05:00Z"}, "spec": spec}
    with pytest.raises(UserError, match=r"; write "):
        compute_due_times(live, parse_time("2026-05-01T10:25:30Z"))
