"""Notebook jobs of any cluster: found, looked at, followed, asked for one more run.

In: which cluster, a name. Out: jobs as they are stored. Never: a guess between two of one name; runs anything here.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from argosy.app.target import TargetOptions, open_target
from argosy.cluster import Cluster
from argosy.model.annotations import RE_RUN
from argosy.model.errors import ClusterError, UserError
from argosy.model.manifest import Manifest, key_of
from argosy.model.names import GroupKind
from argosy.model.times import written

JOB: Final = GroupKind("mlops.mlops.dev", "NotebookValidationJob")
TERMINAL: Final = ("Succeeded", "Failed")
PAUSE: Final = 0.3  # seconds between looks at one that is followed


@dataclass(frozen=True)
class JobDesk:
    cluster: Cluster
    where: str

    async def all(self, namespace: str = "") -> list[Manifest]:
        try:
            found = (await self.cluster.list(JOB, namespace=namespace)).items
        except ClusterError as error:
            if error.code == 404:
                advice = "install it with deploy/notebooks, or begin with: argosy demo"
                raise UserError(f"this cluster does not know NotebookValidationJobs; {advice}") from error
            raise
        return sorted(found, key=lambda each: (each["metadata"]["namespace"], each["metadata"]["name"]))

    async def find(self, name: str, namespace: str = "") -> Manifest:
        """By `NAME`, in whatever namespace it is, or by `NAMESPACE/NAME`."""
        before, _, plain = name.rpartition("/")
        among = await self.all(before or namespace)
        found = [each for each in among if each["metadata"]["name"] == plain]
        if len(found) == 1:
            return found[0]
        if found:
            places = " or ".join(f"{each['metadata']['namespace']}/{plain}" for each in found)
            raise UserError(f"there are {len(found)} notebook jobs {plain}; say which: {places}")
        near = difflib.get_close_matches(plain, [str(each["metadata"]["name"]) for each in among], n=1)
        hint = f"did you mean {near[0]}?" if near else "see which there are: argosy notebook list"
        raise UserError(f"there is no notebook job {plain}; {hint}")

    async def run_again(self, job: Manifest) -> str:
        """What was written to the job: any text that was not there before."""
        mark = written(datetime.now(UTC), "microseconds")
        await self.cluster.patch(key_of(job), {"metadata": {"annotations": {RE_RUN: mark}}})
        return mark

    async def following(self, job: Manifest, *, since: str = "") -> AsyncIterator[Manifest]:
        """As it is now, and whenever it has changed, until it is over. `since`: the run that was asked for."""
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
    """Whether its status is about the spec that it has, and about the run that was asked for."""
    status: dict[str, Any] = job.get("status") or {}
    is_newest = status.get("observedGeneration") in (None, job["metadata"].get("generation"))
    return is_newest and (not since or status.get("observedReRun") == since)


def is_over(job: Manifest, since: str = "") -> bool:
    return is_of(job, since) and (job.get("status") or {}).get("phase") in TERMINAL


@asynccontextmanager
async def open_jobs(options: TargetOptions) -> AsyncIterator[JobDesk]:
    async with open_target(options) as (cluster, target):
        yield JobDesk(cluster, target.where)
