"""Simulates the Deployment controller: one ReplicaSet per Pod template, and the rollout from one to the next.

In: the key of a Deployment. Out: its ReplicaSets and its status. Never: creates a Pod itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy.kube.controller import Cache, Context, Requeue, Watch, owner
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, annotation, key_of
from argosy.sandbox.simulators import rollout
from argosy.sandbox.simulators.adoption import Orphans
from argosy.sandbox.simulators.constants import (
    DEPLOYMENT,
    REPLICA_SET,
    is_dying,
    is_played_by_others,
    own_key,
    owner_of,
    unmarked,
)
from argosy.sandbox.simulators.deployment_status import is_complete, status_of
from argosy.sandbox.simulators.events import Happening, Recorder
from argosy.sandbox.simulators.pod_templates import (
    REVISION,
    by_age,
    copied_annotations,
    is_of_template,
    marks,
    new_replica_set,
    revision_of,
)
from argosy.sandbox.simulators.rollout import Bounds, counted, replicas
from argosy.sandbox.simulators.writes import adopt, change, create_once, keep_status, patient, remove


class Deployments:
    name = "simulated-deployments"
    watches = (Watch(DEPLOYMENT, unmarked), Watch(REPLICA_SET, owner(DEPLOYMENT)))

    def __init__(self) -> None:
        self._orphans = Orphans(REPLICA_SET)
        self._events = Recorder("deployment-controller")

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            return None
        for orphan in self._orphans.fitting(live, context.cache):
            await adopt(orphan, live, context.cluster)
        owned = by_age(_owned(live, context.cache))
        template = live["spec"]["template"]
        new = next((each for each in owned if is_of_template(each, template)), None)
        old = [each for each in owned if each is not new]
        bounds = rollout.bounds_of(live)
        if await self._rescale(live, [each for each in owned if replicas(each)], bounds, context):
            return None
        if not live["spec"].get("paused"):
            if await self._advance(live, new, old, bounds, context):
                return None  # the watch event of that write triggers the next reconcile
        elif len(active := [each for each in owned if replicas(each)] or owned[-1:]) == 1:
            # k8s: a single ReplicaSet may be scaled while paused
            await self._resize(live, active[0], bounds.wanted, bounds, context)
        if new is not None and not old and not counted(new, "observedGeneration"):
            return None  # no status yet; its first status update triggers the next reconcile
        status, wait = status_of(live, new, old, bounds, context.clock.now())
        if is_complete(status, bounds.wanted):
            await _forget(live, old, context)
        await keep_status(live, status, context.cluster)
        return Requeue(wait) if wait is not None else None

    async def _advance(
        self, live: Manifest, new: Manifest | None, old: Sequence[Manifest], bounds: Bounds, context: Context
    ) -> bool:
        """Take one step of the rollout; return True if the Deployment itself was written and must be read again."""
        is_recreated = _is_recreated(live)
        revision = max(map(revision_of, old), default=0) + 1
        if new is None:
            if is_recreated and any(replicas(each) or counted(each, "replicas") for each in old):
                await self._empty(live, old, bounds, context)
                return False
            return await self._begin(live, old, bounds, revision, context)
        if await _mark(live, new, max(revision_of(new), revision), bounds, context):
            return True
        if is_recreated:
            await self._empty(live, old, bounds, context)
            if not any(replicas(each) or counted(each, "replicas") for each in old):
                await self._resize(live, new, bounds.wanted, bounds, context)
            return False
        await self._resize(live, new, rollout.next_size(bounds, new, old), bounds, context)
        for each, size in rollout.shrunk(bounds, new, old):
            await self._resize(live, each, size, bounds, context)
        return False

    async def _empty(self, live: Manifest, old: Sequence[Manifest], bounds: Bounds, context: Context) -> None:
        for each in old:
            await self._resize(live, each, 0, bounds, context)

    async def _begin(
        self, live: Manifest, old: Sequence[Manifest], bounds: Bounds, revision: int, context: Context
    ) -> bool:
        size = rollout.first_size(bounds, old)
        made = new_replica_set(live, size=size, most=bounds.most, revision=revision)
        if await create_once(made, context.cluster):
            await self._tell(live, made, 0, size, context)
        else:
            await _settle_collision(live, made, context)
        await _mark_deployment(live, revision, context)
        return True

    async def _rescale(self, live: Manifest, active: Sequence[Manifest], bounds: Bounds, context: Context) -> bool:
        """Scale all active ReplicaSets proportionally if replicas changed during a rollout; return True if it did."""
        if len(active) < 2 or _is_recreated(live) or not rollout.is_rescaled(bounds, active):
            return False
        for each, size in rollout.proportions(bounds, active):
            await self._write(live, each, size, bounds, context)
        return True

    async def _resize(self, live: Manifest, which: Manifest, size: int, bounds: Bounds, context: Context) -> None:
        if replicas(which) != size:
            await self._write(live, which, size, bounds, context)

    async def _write(self, live: Manifest, which: Manifest, size: int, bounds: Bounds, context: Context) -> None:
        annotations = marks(bounds.wanted, bounds.most, revision_of(which))
        patch = {"metadata": {"annotations": annotations}, "spec": {"replicas": size}}
        await change(which, patch, context.cluster)
        await self._tell(live, which, replicas(which), size, context)

    async def _tell(self, live: Manifest, which: Manifest, before: int, after: int, context: Context) -> None:
        if before != after:
            way = "up" if after > before else "down"
            message = f"Scaled {way} replica set {which['metadata']['name']} from {before} to {after}"
            await self._events.tell(live, [Happening("ScalingReplicaSet", message)], context)


def _is_recreated(live: Manifest) -> bool:
    return bool((live["spec"].get("strategy") or {}).get("type") == "Recreate")


def _owned(live: Manifest, cache: Cache) -> list[Manifest]:
    uid = live["metadata"]["uid"]
    owned = (each for each in cache.owned(uid) if each["kind"] == "ReplicaSet")
    return [each for each in owned if (owner_of(each) or {}).get("uid") == uid and not is_dying(each)]


async def _settle_collision(live: Manifest, made: Manifest, context: Context) -> None:
    """Raise collisionCount if the name belongs to a ReplicaSet of another owner or template.

    A ReplicaSet of our own that the cache does not show yet is not a collision.
    """
    there = await context.cluster.get(own_key(REPLICA_SET, live["metadata"]["namespace"], made["metadata"]["name"]))
    if there is None:
        return
    is_ours = (owner_of(there) or {}).get("uid") == live["metadata"]["uid"]
    if not (is_ours and is_of_template(there, live["spec"]["template"])):
        collisions = int((live.get("status") or {}).get("collisionCount") or 0)
        await keep_status(live, {"collisionCount": collisions + 1}, context.cluster)


async def _mark(live: Manifest, new: Manifest, revision: int, bounds: Bounds, context: Context) -> bool:
    """Update the annotations that `kubectl rollout history` and `undo` use; return True if the Deployment was
    written."""
    wanted = {**copied_annotations(live), **marks(bounds.wanted, bounds.most, revision)}
    known = new["metadata"].get("annotations") or {}
    if any(known.get(name) != value for name, value in wanted.items()) and replicas(new) == bounds.wanted:
        await change(new, {"metadata": {"annotations": wanted}}, context.cluster)
    elif known.get(REVISION) != str(revision):
        await change(new, {"metadata": {"annotations": {REVISION: str(revision)}}}, context.cluster)
    return await _mark_deployment(live, revision, context)


async def _mark_deployment(live: Manifest, revision: int, context: Context) -> bool:
    if annotation(live, REVISION) == str(revision):
        return False
    mark = {"uid": live["metadata"]["uid"], "annotations": {REVISION: str(revision)}}
    await context.cluster.patch(key_of(live), {"metadata": mark})
    return True


async def _forget(live: Manifest, old: Sequence[Manifest], context: Context) -> None:
    """Delete empty old ReplicaSets above `revisionHistoryLimit`."""
    empty = [each for each in old if not replicas(each) and not counted(each, "replicas")]
    surplus = len(empty) - int(live["spec"].get("revisionHistoryLimit", 10))
    for each in sorted(empty, key=revision_of)[: max(surplus, 0)]:
        await remove(each, context.cluster)
