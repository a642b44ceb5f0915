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
from argosy.features.promote.environments import Way
from argosy.features.promote.gates import Ran
from argosy.features.promote.promotion_log import By
from argosy.gitops.application_client.client import Desk, Opening
from argosy.gitops.application_client.refresh_requests import ask_quietly
from argosy.gitops.sync.stale_status import find_stale_generations
from argosy.kube.client import Cluster
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

SECONDS: Final = 8.0
JOB: Final = ("mlops.mlops.dev", "NotebookValidationJob")


@dataclass(frozen=True)
class Answers:
    """Cluster objects by environment; `unavailable_reason` is set if there are none."""

    where: str = ""
    apps: dict[str, Manifest | None] = field(default_factory=dict)  # by environment
    notebooks: dict[tuple[str, str], Ran | None] = field(default_factory=dict)  # by environment and name
    by: By | None = None
    now: datetime | None = None  # the cluster's time, if known
    why: str = ""


def ask(opening: Opening, way: Way) -> Answers:
    """Fetch the state; without a cluster, return the reason instead of an error."""

    async def run() -> Answers:
        async with asyncio.timeout(SECONDS), opening() as desk:
            return await _answers(desk, way)

    try:
        return asyncio.run(run())
    except TimeoutError:
        return Answers(why=f"the cluster did not answer within {SECONDS:.0f} s")
    except ArgosyError as error:
        return Answers(why=f"no cluster ({str(error).partition(';')[0]})")


async def _answers(desk: Desk, way: Way) -> Answers:
    cluster, namespace = desk.cluster, way.control or desk.control
    apps: dict[str, Manifest | None] = {}
    notebooks: dict[tuple[str, str], Ran | None] = {}
    for each in way.environments:
        apps[each.name] = await _get(cluster, ResourceKey("argoproj.io", "Application", namespace, each.application))
        before = way.before(each)
        for gate in each.gates:
            if gate.kind == "notebook" and before is not None:
                found = await _get(cluster, ResourceKey(*JOB, before.namespace, gate.value))
                notebooks[before.name, gate.value] = _ran(found)
    by, now = await _who(cluster)
    return Answers(desk.where, apps, notebooks, by, now)


async def _get(cluster: Cluster, key: ResourceKey) -> Manifest | None:
    try:
        return await cluster.get(key)
    except ClusterError:
        return None  # not served or forbidden: unknown


def _ran(job: Manifest | None) -> Ran | None:
    if job is None:
        return None
    status = job.get("status") or {}
    if find_stale_generations(job):
        return Ran("", message="its status is for an older spec")
    ended = time_of(status.get("completionTime"))
    return Ran(str(status.get("phase") or ""), ended, str(status.get("message") or ""))


async def _who(cluster: Cluster) -> tuple[By | None, datetime | None]:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await cluster.create(review)
    except ClusterError:
        return None, None
    now = time_of((answer.get("metadata") or {}).get("creationTimestamp"))
    user: dict[str, Any] = (answer.get("status") or {}).get("userInfo") or {}
    groups = tuple(str(each) for each in user.get("groups") or () if each != "system:authenticated")
    return (By(str(user["username"]), "cluster", groups) if user.get("username") else None), now


def refresh(opening: Opening, way: Way, names: Sequence[str]) -> None:
    """Request a refresh of the Applications, so that the engine sees the new commit immediately."""

    async def run() -> None:
        async with asyncio.timeout(SECONDS), opening() as desk:
            for name in names:
                key = ResourceKey("argoproj.io", "Application", way.control or desk.control, name)
                await ask_quietly(desk.cluster, key)

    try:
        asyncio.run(run())
    except (TimeoutError, ArgosyError):
        pass  # the engine refreshes later anyway


def time_of(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
