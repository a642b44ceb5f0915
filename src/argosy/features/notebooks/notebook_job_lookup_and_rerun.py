"""Client for notebook jobs of a cluster: list, find, follow, run again.

In: a cluster, a name. Out: jobs as stored. Never: guesses between two jobs of the same name; runs anything here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from argosy.annotations import RE_RUN
from argosy.cli.cluster_target import TargetOptions, open_target
from argosy.errors import UserError
from argosy.kube.client import Cluster
from argosy.kube.client.user_typed_object_name_lookup import (
    KindNoun,
    build_not_found_error,
    find_unique,
    list_objects,
    read_typed_name,
)
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.well_known_kinds import NOTEBOOK_JOB

NOUN: Final = KindNoun(
    NOTEBOOK_JOB,
    "notebook job",
    "argosy notebook list",
    "install it with deploy/notebooks, or start with: argosy demo",
)
TERMINAL: Final = ("Succeeded", "Failed")
POLL_INTERVAL_SECONDS: Final = 0.3  # seconds between polls


@dataclass(frozen=True)
class NotebookJobClient:
    cluster: Cluster
    target_name: str

    async def list_jobs(self, namespace: str = "") -> list[Manifest]:
        return await list_objects(NOUN, self.cluster, namespace)

    async def find(self, typed: str, namespace: str = "") -> Manifest:
        namespace, name = read_typed_name(typed, namespace)
        jobs = await self.list_jobs(namespace)
        job = find_unique(NOUN, name, jobs)
        if job is None:
            raise build_not_found_error(NOUN, namespace, name, jobs)
        return job

    async def run_again(self, job: Manifest) -> str:
        """Request another run; returns the new annotation value."""
        re_run = format_timestamp(datetime.now(UTC), "microseconds")
        await self.cluster.patch(key_of(job), {"metadata": {"annotations": {RE_RUN: re_run}}})
        return re_run

    async def follow(self, job: Manifest, *, re_run: str = "") -> AsyncIterator[Manifest]:
        """Yield the job now and whenever it changed, until the run is over. `re_run`: the requested run."""
        seen_version = ""
        while True:
            live = await self.cluster.get(key_of(job))
            if live is None:
                raise UserError(f"{job['metadata']['name']} was deleted")
            version = str(live["metadata"]["resourceVersion"])
            if version != seen_version:
                seen_version = version
                if is_status_current(live, re_run):
                    yield live
                if is_over(live, re_run):
                    return
            await asyncio.sleep(POLL_INTERVAL_SECONDS)


def is_status_current(job: Manifest, re_run: str = "") -> bool:
    """True if the status is about the current spec, and about the requested run."""
    status: dict[str, Any] = job.get("status") or {}
    is_newest = status.get("observedGeneration") in (None, job["metadata"].get("generation"))
    return is_newest and (not re_run or status.get("observedReRun") == re_run)


def is_over(job: Manifest, re_run: str = "") -> bool:
    return is_status_current(job, re_run) and (job.get("status") or {}).get("phase") in TERMINAL


@asynccontextmanager
async def open_jobs(options: TargetOptions) -> AsyncIterator[NotebookJobClient]:
    async with open_target(options) as (cluster, target):
        yield NotebookJobClient(cluster, target.display_name)
