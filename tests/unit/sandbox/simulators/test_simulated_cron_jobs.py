"""CronJobs that the simulators play, with a clock that leaps."""

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
from support.simulators import CRON_JOB, JOB, World, condition, fail, leaping, made, simulated, template

HOUR = 3600


def cron_job(schedule: str = "", annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    """Hourly unless said otherwise, half an hour from now: the next time comes by a leap of the clock alone."""
    schedule = schedule or f"{(datetime.now(UTC).minute + 30) % 60} * * * *"
    job = {"spec": {"template": template(annotations, restartPolicy="Never")}}
    return made("batch/v1", "CronJob", {"schedule": schedule, "jobTemplate": job, **spec})


async def jobs(world: World) -> list[Manifest]:
    return sorted(await world.all(JOB), key=lambda each: str(each["metadata"]["name"]))


async def jobs_become(world: World, count: int, done: int) -> list[Manifest]:
    def is_so(found: list[Manifest]) -> bool:
        return len(found) == count and sum(1 for it in found if condition(it, "Complete")["status"]) == done

    async with asyncio.timeout(HANG_SECONDS):
        while not is_so(found := await jobs(world)):
            await asyncio.sleep(0.01)
    return found


@pytest.mark.anyio
async def test_a_job_is_made_each_hour_and_only_so_many_are_kept(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(cron_job(successfulJobsHistoryLimit=2))
        names: set[str] = set()
        for number in (1, 2, 3):
            clock.leap(HOUR)
            live = await world.becomes(
                CRON_JOB,
                lambda it, names=names: it["status"]["lastScheduleTime"] not in names,  # type: ignore[misc]
            )
            names.add(live["status"]["lastScheduleTime"])
            found = await jobs_become(world, min(number, 2), min(number, 2))
        await world.becomes(CRON_JOB, lambda it: it["status"]["lastSuccessfulTime"] and not it["status"].get("active"))
        said = await world.told("SuccessfulDelete", "SawCompletedJob: Saw completed job: web-", "condition: Complete")
    assert len(names) == 3
    scheduled = found[-1]["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    minute = int(datetime.fromisoformat(scheduled).timestamp()) // 60
    assert found[-1]["metadata"]["name"] == f"web-{minute}"
    assert sum(each.startswith("SuccessfulCreate: Created job web-") for each in said) == 3


@pytest.mark.anyio
async def test_a_suspended_one_makes_nothing_until_it_is_resumed(cluster: EmbeddedCluster) -> None:
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
async def test_a_job_that_still_runs_is_treated_as_the_policy_says(
    cluster: EmbeddedCluster, policy: str, count: int
) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(cron_job(annotations={"sandbox.argosy.dev/run-for": "100h"}, concurrencyPolicy=policy))
        await world.settled()
        clock.leap(HOUR)
        live = await world.becomes(CRON_JOB, lambda it: len(it["status"]["active"]) == 1)
        first = live["status"]["active"][0]["name"]
        clock.leap(HOUR)
        if policy == "Forbid":
            await world.told("JobAlreadyActive: Not starting job because prior execution is running")
        else:
            await world.becomes(
                CRON_JOB,
                lambda it: len(it["status"]["active"]) == count and it["status"]["active"][-1]["name"] != first,
            )
        found = await jobs_become(world, count, 0)
    assert (first in {each["metadata"]["name"] for each in found}) == (policy != "Replace")


@pytest.mark.anyio
async def test_a_fault_on_the_cron_job_reaches_its_pods(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        wanted = cron_job()
        wanted["metadata"]["annotations"] = fail("Exit")
        wanted["spec"]["jobTemplate"]["spec"]["backoffLimit"] = 0
        await cluster.create(wanted)
        await world.settled()
        clock.leap(HOUR)
        live = await world.becomes(CRON_JOB, lambda it: it["status"]["lastScheduleTime"])
        await world.told("SawCompletedJob", "condition: Failed")
        (job,) = await jobs(world)
    assert condition(job, "Failed")["reason"] == "BackoffLimitExceeded" and live


@pytest.mark.anyio
async def test_without_a_reason_a_cron_job_writes_nothing(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(cron_job("0 0 1 1 *"))
        before = await world.settled()
        assert await world.settled() == before


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize(
    ("schedule", "spec", "last", "missed", "upcoming"),
    [
        ("*/10 * * * *", {}, "2026-05-01T10:20:00Z", 2, "2026-05-01T10:30:00Z"),
        ("0 * * * *", {}, None, 0, "2026-05-01T11:00:00Z"),
        ("*/10 * * * *", {"startingDeadlineSeconds": 60}, None, 0, "2026-05-01T10:30:00Z"),
        ("20 12 * * *", {"timeZone": "Europe/Berlin"}, "2026-05-01T10:20:00Z", 1, "2026-05-02T10:20:00Z"),
    ],
)
def test_what_is_due_is_the_last_time_that_was_missed(
    schedule: str, spec: dict[str, Any], last: str | None, missed: int, upcoming: str
) -> None:
    live = cron_job(schedule, **spec)
    live["metadata"]["creationTimestamp"] = "2026-05-01T10:05:00Z"
    found = compute_due_times(live, at("2026-05-01T10:25:00Z"))
    assert (found.last_missed, found.missed_count, found.next_time) == (
        at(last) if last else None,
        missed,
        at(upcoming),
    )


def test_a_year_without_anybody_looking_is_one_job_and_quickly_found() -> None:
    live = cron_job("* * * * *")
    live["metadata"]["creationTimestamp"] = "2025-05-01T10:05:00Z"
    found = compute_due_times(live, at("2026-05-01T10:25:30Z"))
    assert found.last_missed == at("2026-05-01T10:25:00Z") and found.missed_count > 100


@pytest.mark.parametrize("spec", [{"schedule": "often"}, {"schedule": "* * * * *", "timeZone": "Nowhere/Land"}])
def test_what_cannot_be_read_is_a_sentence(spec: dict[str, str]) -> None:
    live = {"metadata": {"creationTimestamp": "2025-05-01T10:05:00Z"}, "spec": spec}
    with pytest.raises(UserError, match=r"; write "):
        compute_due_times(live, at("2026-05-01T10:25:30Z"))
