"""What a cluster says of environments: health and since when, what was synced, holds, notebooks, who asks.

In: a way to open a cluster. Out: Answers. Never: writes, but for a refresh that was asked for; waits for long.
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
    """`why` says why there are none."""

    where: str = ""
    apps: dict[str, Manifest | None] = field(default_factory=dict)  # by environment
    notebooks: dict[tuple[str, str], Ran | None] = field(default_factory=dict)  # by environment and name
    by: By | None = None
    now: datetime | None = None  # by the cluster's clock, where it tells
    why: str = ""


def ask(opening: Opening, way: Way) -> Answers:
    """Nobody need have a cluster: then the reason is the answer."""

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
        return None  # not served, or not to be seen by who asks: then nothing is known of it


def _ran(job: Manifest | None) -> Ran | None:
    if job is None:
        return None
    status = job.get("status") or {}
    if find_stale_generations(job):
        return Ran("", message="its status is of an older spec")
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
    """So that what was committed where the engine reads is seen at once."""

    async def run() -> None:
        async with asyncio.timeout(SECONDS), opening() as desk:
            for name in names:
                key = ResourceKey("argoproj.io", "Application", way.control or desk.control, name)
                await ask_quietly(desk.cluster, key)

    try:
        asyncio.run(run())
    except (TimeoutError, ArgosyError):
        pass  # it is looked at anyway, only later


def time_of(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
