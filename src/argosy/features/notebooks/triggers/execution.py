"""Executes one trigger step by step.

In: a trigger execution. Out: the result, or when to continue. Raises UserError or ClusterError if it cannot succeed,
and TransientError or Conflict if it may soon succeed. Never: does the same step twice.
"""

from __future__ import annotations

from argosy.annotations import RESTART_TIMESTAMP
from argosy.errors import UserError
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.triggers import applications, restarts, trials
from argosy.features.notebooks.triggers.entries import APPLICATION, RESTART, SYNC, Entry
from argosy.features.notebooks.triggers.records import Record, mark_of
from argosy.features.notebooks.triggers.turns import Acted, Turn
from argosy.gitops.application.refresh import refresh_asked
from argosy.kube.client import Cluster, KindInfo
from argosy.kube.controller import Context
from argosy.kube.names import CONTROL_NAMESPACES, ResourceKey
from argosy.kube.objects import Manifest

# argo: namespaces where an installation keeps its Applications by default


async def act(entry: Entry, job: Job, record: Record, context: Context) -> Acted:
    catalog = await context.cluster.kinds()
    info = catalog.get(entry.group_kind)
    if info is None:
        raise UserError(f"{entry.group_kind} is not served by this cluster; see kubectl api-resources")
    target = await _target(entry, job, info, context.cluster)
    turn = Turn(entry, job, record, mark_of(job, record), info.plural, context.cluster, context.clock.now())
    found = await _acted(turn, target)
    namespace = str(target["metadata"].get("namespace") or "")
    acted = {"acted": True} if turn.has_acted or turn.is_marked(target) else {}
    return Acted(found.message, found.again, {"namespace": namespace, **acted, **found.fields})


async def _acted(turn: Turn, target: Manifest) -> Acted:
    if turn.entry.action == RESTART:
        return await restarts.restart(turn, target)
    if turn.entry.action == SYNC:
        return await applications.sync(turn, target)
    return await _refresh(turn, target)


async def _refresh(turn: Turn, target: Manifest) -> Acted:
    """Patch only annotations, so that other writers do not conflict."""
    is_app = turn.entry.group_kind == APPLICATION
    if not turn.is_marked(target):
        await turn.may_patch(target)
        asked = refresh_asked(target["metadata"].get("annotations") or {}, turn.now)
        await turn.patch(target, {}, asked if is_app else {RESTART_TIMESTAMP: turn.time})
    if is_app and turn.entry.waits:
        return await applications.refreshed(turn, target)
    return Acted("refresh requested" if is_app else f"annotated with {RESTART_TIMESTAMP}")


async def _target(entry: Entry, job: Job, info: KindInfo, cluster: Cluster) -> Manifest:
    places = [entry.namespace or job.namespace] if info.namespaced else [""]
    if entry.group_kind == APPLICATION and not entry.namespace:
        places = list(dict.fromkeys((*CONTROL_NAMESPACES, job.namespace)))
    for namespace in places:
        found = await cluster.get(ResourceKey(*entry.group_kind, namespace, entry.name))
        if found is not None:
            return found
    where = f" in namespace {' or '.join(places)}" if places[0] else ""
    raise UserError(f"{entry.kind} {entry.name} not found{where}; correct the trigger, or create the object")


async def forget(entry: Entry, job: Job, record: Record, context: Context) -> None:
    """Delete the trial Pod of a failed trigger."""
    info = (await context.cluster.kinds()).get(entry.group_kind)
    if info is not None:
        turn = Turn(entry, job, record, mark_of(job, record), info.plural, context.cluster, context.clock.now())
        await trials.end(turn, {"metadata": {"namespace": entry.namespace or job.namespace}})
