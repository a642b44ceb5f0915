"""Builds images for notebooks.

In: a job with a `buildConfig`. Out: a BuildState. Never: waits; uses the image of an earlier run; touches objects of
others or in another namespace.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import ClusterError, Conflict
from argosy.features.notebooks.image_builds import openshift, tekton
from argosy.features.notebooks.image_builds.object_metadata import is_owned_by, read_run_id
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.state_machine import BuildState
from argosy.kube.client import Cluster
from argosy.kube.controller import ControllerContext
from argosy.kube.objects import Manifest, key_of

STRATEGIES: Final = {"s2i": openshift, "tekton": tekton}


class ImageBuilds:
    async def observe(self, job: NotebookJob, run_id: str, context: ControllerContext) -> BuildState:
        """`run_id` identifies this run; builds of earlier runs are deleted first."""
        assert job.build is not None
        strategy, cluster = STRATEGIES[job.build.strategy], context.cluster
        if strategy.KIND not in await cluster.kinds():
            message = (
                f"the cluster does not serve {strategy.KIND}; {strategy.ADVICE}, or set buildConfig.enabled to false"
            )
            return BuildState("unavailable", message=message, strategy=job.build.strategy)
        manifests = strategy.build_manifests(job, run_id)
        live = await cluster.get(key_of(manifests[0]))
        if live is not None and not is_owned_by(job, live):
            message = f"{strategy.KIND.kind} {live['metadata']['name']} is not owned by this job; rename it or the job"
            return BuildState("failed", message=message, strategy=job.build.strategy)
        if live is not None and read_run_id(live) != run_id:
            await _delete(live, cluster)
            live = None
        if live is None:
            for manifest in reversed(manifests):  # the object that starts the build comes last
                await _create_if_missing(manifest, cluster)
            return BuildState("absent", message="starting the build", strategy=job.build.strategy)
        build_state: BuildState = await strategy.load_build_state(job, live, cluster)
        return build_state

    async def stop(self, job: NotebookJob, context: ControllerContext) -> None:
        """Delete a running build; a failed one stays for inspection."""
        assert job.build is not None
        strategy = STRATEGIES[job.build.strategy]
        if strategy.KIND not in await context.cluster.kinds():
            return
        live = await context.cluster.get(key_of(strategy.build_manifests(job, "")[0]))
        if live is not None and is_owned_by(job, live):
            build_state = await strategy.load_build_state(job, live, context.cluster)
            if build_state.state == "running":
                await _delete(live, context.cluster)


async def _create_if_missing(manifest: Manifest, cluster: Cluster) -> None:
    try:
        await cluster.create(manifest)
    except Conflict as error:
        if error.reason != "AlreadyExists":
            raise


async def _delete(live: Manifest, cluster: Cluster) -> None:
    try:
        await cluster.delete(key_of(live), uid=live["metadata"]["uid"])
    except ClusterError as error:
        if error.code != 404:
            raise
