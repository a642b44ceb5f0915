"""Fetches the environments' Applications and notebook jobs from the cluster, and the user's identity.

In: a ServiceOpener. Out: EnvironmentClusterState. Never: writes, except to request a refresh; waits longer than 8 s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from argosy.errors import ArgosyError, ClusterError
from argosy.features.promote.gates import NotebookRun
from argosy.features.promote.promotion_log_trailers import PromotionActor
from argosy.features.promote.promotion_pipeline import PromotionPipeline
from argosy.gitops.application_client.application_service import ApplicationService, ServiceOpener
from argosy.gitops.application_client.rate_limited_refresh_queue import write_refresh_annotation
from argosy.gitops.sync.observed_generation_check import find_stale_generations
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, AUTHENTICATION_API_VERSION, NOTEBOOK_JOB

CLUSTER_TIMEOUT_SECONDS: Final = 8.0


@dataclass(frozen=True)
class EnvironmentClusterState:
    """Cluster objects by environment; `unavailable_reason` is set if there are none."""

    cluster_name: str = ""
    apps: dict[str, Manifest | None] = field(default_factory=dict)  # by environment
    notebooks: dict[tuple[str, str], NotebookRun | None] = field(default_factory=dict)  # by environment and name
    actor: PromotionActor | None = None
    now: datetime | None = None  # the cluster's time, if known
    unavailable_reason: str = ""


def fetch_cluster_state(open_service: ServiceOpener, pipeline: PromotionPipeline) -> EnvironmentClusterState:
    """Fetch the state; without a cluster, return the reason instead of an error."""

    async def run() -> EnvironmentClusterState:
        async with asyncio.timeout(CLUSTER_TIMEOUT_SECONDS), open_service() as service:
            return await _fetch_cluster_state(service, pipeline)

    try:
        return asyncio.run(run())
    except TimeoutError:
        return EnvironmentClusterState(
            unavailable_reason=f"the cluster did not answer within {CLUSTER_TIMEOUT_SECONDS:.0f} s"
        )
    except ArgosyError as error:
        return EnvironmentClusterState(unavailable_reason=f"no cluster ({str(error).partition(';')[0]})")


async def _fetch_cluster_state(service: ApplicationService, pipeline: PromotionPipeline) -> EnvironmentClusterState:
    cluster, namespace = service.cluster, pipeline.control_namespace or service.control_namespace
    apps: dict[str, Manifest | None] = {}
    notebooks: dict[tuple[str, str], NotebookRun | None] = {}
    for environment in pipeline.environments:
        apps[environment.name] = await _find_object(
            cluster, ResourceKey(*APPLICATION, namespace, environment.application)
        )
        before = pipeline.find_previous(environment)
        for gate in environment.gates:
            if gate.kind == "notebook" and before is not None:
                job = await _find_object(cluster, ResourceKey(*NOTEBOOK_JOB, before.namespace, gate.value))
                notebooks[before.name, gate.value] = _read_notebook_run(job)
    by, now = await _fetch_actor(cluster)
    return EnvironmentClusterState(service.cluster_name, apps, notebooks, by, now)


async def _find_object(cluster: Cluster, key: ResourceKey) -> Manifest | None:
    try:
        return await cluster.get(key)
    except ClusterError:
        return None  # not served or forbidden: unknown


def _read_notebook_run(job: Manifest | None) -> NotebookRun | None:
    if job is None:
        return None
    status = job.get("status") or {}
    if find_stale_generations(job):
        return NotebookRun("", message="its status is for an older spec")
    ended = parse_timestamp(status.get("completionTime"))
    return NotebookRun(str(status.get("phase") or ""), ended, str(status.get("message") or ""))


async def _fetch_actor(cluster: Cluster) -> tuple[PromotionActor | None, datetime | None]:
    review = {"apiVersion": AUTHENTICATION_API_VERSION, "kind": "SelfSubjectReview"}
    try:
        response = await cluster.create(review)
    except ClusterError:
        return None, None
    now = parse_timestamp((response.get("metadata") or {}).get("creationTimestamp"))
    user: dict[str, Any] = (response.get("status") or {}).get("userInfo") or {}
    groups = tuple(str(group) for group in user.get("groups") or () if group != "system:authenticated")
    return (PromotionActor(str(user["username"]), "cluster", groups) if user.get("username") else None), now


def request_refresh(open_service: ServiceOpener, pipeline: PromotionPipeline, names: Sequence[str]) -> None:
    """Request a refresh of the Applications, so that the engine sees the new commit immediately."""

    async def run() -> None:
        async with asyncio.timeout(CLUSTER_TIMEOUT_SECONDS), open_service() as service:
            for name in names:
                key = ResourceKey(*APPLICATION, pipeline.control_namespace or service.control_namespace, name)
                await write_refresh_annotation(service.cluster, key)

    try:
        asyncio.run(run())
    except (TimeoutError, ArgosyError):
        pass  # the engine refreshes later anyway


def parse_timestamp(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
