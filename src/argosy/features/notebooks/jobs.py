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
from argosy.cli.target import TargetOptions, open_target
from argosy.errors import UserError
from argosy.kube.client import Cluster
from argosy.kube.client.object_search import Noun, all_of, nobody, the_one, typed_name
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps import written

JOB: Final = GroupKind("mlops.mlops.dev", "NotebookValidationJob")
NOUN: Final = Noun(
    JOB, "notebook job", "argosy notebook list", "install it with deploy/notebooks, or start with: argosy demo"
)
TERMINAL: Final = ("Succeeded", "Failed")
PAUSE: Final = 0.3  # seconds between polls


@dataclass(frozen=True)
class JobDesk:
    cluster: Cluster
    where: str

    async def all(self, namespace: str = "") -> list[Manifest]:
        return await all_of(NOUN, self.cluster, namespace)

    async def find(self, typed: str, namespace: str = "") -> Manifest:
        namespace, name = typed_name(typed, namespace)
        among = await self.all(namespace)
        found = the_one(NOUN, name, among)
        if found is None:
            raise nobody(NOUN, namespace, name, among)
        return found

    async def run_again(self, job: Manifest) -> str:
        """Request another run; returns the new annotation value."""
        mark = written(datetime.now(UTC), "microseconds")
        await self.cluster.patch(key_of(job), {"metadata": {"annotations": {RE_RUN: mark}}})
        return mark

    async def following(self, job: Manifest, *, since: str = "") -> AsyncIterator[Manifest]:
        """Yield the job now and whenever it changed, until the run is over. `re_run`: the requested run."""
        seen = ""
        while True:
            live = await self.cluster.get(key_of(job))
            if live is None:
                raise UserError(f"{job['metadata']['name']} was deleted")
            version = str(live["metadata"]["resourceVersion"])
            if version != seen:
                seen = version
                if is_of(live, since):
                    yield live
                if is_over(live, since):
                    return
            await asyncio.sleep(PAUSE)


def is_of(job: Manifest, since: str = "") -> bool:
    """True if the status is about the current spec, and about the requested run."""
    status: dict[str, Any] = job.get("status") or {}
    is_newest = status.get("observedGeneration") in (None, job["metadata"].get("generation"))
    return is_newest and (not since or status.get("observedReRun") == since)


def is_over(job: Manifest, since: str = "") -> bool:
    return is_of(job, since) and (job.get("status") or {}).get("phase") in TERMINAL


@asynccontextmanager
async def open_jobs(options: TargetOptions) -> AsyncIterator[JobDesk]:
    async with open_target(options) as (cluster, target):
        yield JobDesk(cluster, target.where)
