"""Builds images for notebooks.

In: a job with a `buildConfig`. Out: a BuildState. Never: waits; uses the image of an earlier run; touches objects of
others or in another namespace.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import ClusterError, Conflict
from argosy.features.notebooks.image_builds import openshift, tekton
from argosy.features.notebooks.image_builds.objects import is_of, mark_of
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.state_machine import BuildStanding
from argosy.kube.client import Cluster
from argosy.kube.controller import Context
from argosy.kube.objects import Manifest, key_of

STRATEGIES: Final = {"s2i": openshift, "tekton": tekton}


class ImageBuilds:
    async def look(self, job: Job, mark: str, context: Context) -> BuildStanding:
        """`run_id` identifies this run; builds of earlier runs are deleted first."""
        assert job.build is not None
        strategy, cluster = STRATEGIES[job.build.strategy], context.cluster
        if strategy.KIND not in await cluster.kinds():
            said = f"the cluster does not serve {strategy.KIND}; {strategy.ADVICE}, or set buildConfig.enabled to false"
            return BuildStanding("unavailable", message=said, strategy=job.build.strategy)
        wanted = strategy.objects(job, mark)
        live = await cluster.get(key_of(wanted[0]))
        if live is not None and not is_of(job, live):
            said = f"{strategy.KIND.kind} {live['metadata']['name']} is not owned by this job; rename it or the job"
            return BuildStanding("failed", message=said, strategy=job.build.strategy)
        if live is not None and mark_of(live) != mark:
            await _remove(live, cluster)
            live = None
        if live is None:
            for manifest in reversed(wanted):  # the object that starts the build comes last
                await _make(manifest, cluster)
            return BuildStanding("absent", message="starting the build", strategy=job.build.strategy)
        found: BuildStanding = await strategy.standing(job, live, cluster)
        return found

    async def end(self, job: Job, context: Context) -> None:
        """Delete a running build; a failed one stays for inspection."""
        assert job.build is not None
        strategy = STRATEGIES[job.build.strategy]
        if strategy.KIND not in await context.cluster.kinds():
            return
        live = await context.cluster.get(key_of(strategy.objects(job, "")[0]))
        if live is not None and is_of(job, live):
            standing = await strategy.standing(job, live, context.cluster)
            if standing.state == "running":
                await _remove(live, context.cluster)


async def _make(manifest: Manifest, cluster: Cluster) -> None:
    try:
        await cluster.create(manifest)
    except Conflict as error:
        if error.reason != "AlreadyExists":
            raise


async def _remove(live: Manifest, cluster: Cluster) -> None:
    try:
        await cluster.delete(key_of(live), uid=live["metadata"]["uid"])
    except ClusterError as error:
        if error.code != 404:
            raise
