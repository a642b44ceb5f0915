"""Simulates the Deployment controller: one ReplicaSet per Pod template, and the rollout from one to the next.

In: the key of a Deployment. Out: its ReplicaSets and its status. Never: creates a Pod itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy.kube.controller import ControllerContext, InformerCache, Requeue, Watch, map_to_owner
from argosy.kube.objects import Manifest, get_annotation, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import DEPLOYMENT, REPLICA_SET
from argosy.sandbox.simulators import deployment_rolling_update_counts
from argosy.sandbox.simulators.adoptable_orphan_lookup import OrphanFinder
from argosy.sandbox.simulators.conditional_writes import (
    adopt,
    create_if_absent,
    delete_object,
    patch_object,
    requeue_on_conflict,
    update_status_if_changed,
)
from argosy.sandbox.simulators.deployment_replica_set_manifests import (
    REVISION_ANNOTATION,
    build_replica_set,
    build_revision_annotations,
    has_same_template,
    read_revision,
    select_copied_annotations,
    sort_by_age,
)
from argosy.sandbox.simulators.deployment_rolling_update_counts import RolloutBounds, read_replicas, read_status_count
from argosy.sandbox.simulators.deployment_status import compute_deployment_status, is_complete
from argosy.sandbox.simulators.event_recorder import EventDraft, EventRecorder
from argosy.sandbox.simulators.owner_references_and_marks import (
    build_key,
    enqueue_if_unmarked,
    find_controller_reference,
    is_being_deleted,
    is_simulated_by_other_addon,
)


class DeploymentController:
    name = "simulated-deployments"
    watches = (Watch(DEPLOYMENT, enqueue_if_unmarked), Watch(REPLICA_SET, map_to_owner(DEPLOYMENT)))

    def __init__(self) -> None:
        self._orphans = OrphanFinder(REPLICA_SET)
        self._events = EventRecorder("deployment-controller")

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        deployment = context.cache.get(key)
        if deployment is None or is_being_deleted(deployment) or is_simulated_by_other_addon(deployment):
            return None
        for orphan in self._orphans.list_matching(deployment, context.cache):
            await adopt(orphan, deployment, context.cluster)
        owned = sort_by_age(_list_owned_replica_sets(deployment, context.cache))
        template = deployment["spec"]["template"]
        new = next((replica_set for replica_set in owned if has_same_template(replica_set, template)), None)
        old = [replica_set for replica_set in owned if replica_set is not new]
        bounds = deployment_rolling_update_counts.read_rollout_bounds(deployment)
        if await self._scale_proportionally(
            deployment, [replica_set for replica_set in owned if read_replicas(replica_set)], bounds, context
        ):
            return None
        if not deployment["spec"].get("paused"):
            if await self._advance_rollout(deployment, new, old, bounds, context):
                return None  # the watch event of that write triggers the next reconcile
        elif len(active := [replica_set for replica_set in owned if read_replicas(replica_set)] or owned[-1:]) == 1:
            # k8s: a single ReplicaSet may be scaled while paused
            await self._scale_if_needed(deployment, active[0], bounds.desired, bounds, context)
        if new is not None and not old and not read_status_count(new, "observedGeneration"):
            return None  # no status yet; its first status update triggers the next reconcile
        status, wait = compute_deployment_status(deployment, new, old, bounds, context.clock.now())
        if is_complete(status, bounds.desired):
            await _delete_old_replica_sets(deployment, old, context)
        await update_status_if_changed(deployment, status, context.cluster)
        return Requeue(wait) if wait is not None else None

    async def _advance_rollout(
        self,
        deployment: Manifest,
        new: Manifest | None,
        old: Sequence[Manifest],
        bounds: RolloutBounds,
        context: ControllerContext,
    ) -> bool:
        """Take one step of the rollout; return True if the Deployment itself was written and must be read again."""
        is_recreated = _uses_recreate_strategy(deployment)
        revision = max(map(read_revision, old), default=0) + 1
        if new is None:
            if is_recreated and any(
                read_replicas(replica_set) or read_status_count(replica_set, "replicas") for replica_set in old
            ):
                await self._scale_to_zero(deployment, old, bounds, context)
                return False
            return await self._create_new_replica_set(deployment, old, bounds, revision, context)
        if await _update_revision_annotations(deployment, new, max(read_revision(new), revision), bounds, context):
            return True
        if is_recreated:
            await self._scale_to_zero(deployment, old, bounds, context)
            if not any(read_replicas(replica_set) or read_status_count(replica_set, "replicas") for replica_set in old):
                await self._scale_if_needed(deployment, new, bounds.desired, bounds, context)
            return False
        await self._scale_if_needed(
            deployment, new, deployment_rolling_update_counts.compute_next_size(bounds, new, old), bounds, context
        )
        for replica_set, size in deployment_rolling_update_counts.compute_scale_downs(bounds, new, old):
            await self._scale_if_needed(deployment, replica_set, size, bounds, context)
        return False

    async def _scale_to_zero(
        self, deployment: Manifest, old: Sequence[Manifest], bounds: RolloutBounds, context: ControllerContext
    ) -> None:
        for replica_set in old:
            await self._scale_if_needed(deployment, replica_set, 0, bounds, context)

    async def _create_new_replica_set(
        self,
        deployment: Manifest,
        old: Sequence[Manifest],
        bounds: RolloutBounds,
        revision: int,
        context: ControllerContext,
    ) -> bool:
        size = deployment_rolling_update_counts.compute_initial_size(bounds, old)
        replica_set = build_replica_set(deployment, replicas=size, max_replicas=bounds.max_total, revision=revision)
        if await create_if_absent(replica_set, context.cluster):
            await self._record_scaling_event(deployment, replica_set, 0, size, context)
        else:
            await _increment_collision_count(deployment, replica_set, context)
        await _annotate_deployment_revision(deployment, revision, context)
        return True

    async def _scale_proportionally(
        self, deployment: Manifest, active: Sequence[Manifest], bounds: RolloutBounds, context: ControllerContext
    ) -> bool:
        """Scale all active ReplicaSets proportionally if replicas changed during a rollout; return True if it did."""
        if (
            len(active) < 2
            or _uses_recreate_strategy(deployment)
            or not deployment_rolling_update_counts.has_desired_changed(bounds, active)
        ):
            return False
        for replica_set, size in deployment_rolling_update_counts.compute_proportional_sizes(bounds, active):
            await self._scale(deployment, replica_set, size, bounds, context)
        return True

    async def _scale_if_needed(
        self, deployment: Manifest, replica_set: Manifest, size: int, bounds: RolloutBounds, context: ControllerContext
    ) -> None:
        if read_replicas(replica_set) != size:
            await self._scale(deployment, replica_set, size, bounds, context)

    async def _scale(
        self, deployment: Manifest, replica_set: Manifest, size: int, bounds: RolloutBounds, context: ControllerContext
    ) -> None:
        annotations = build_revision_annotations(bounds.desired, bounds.max_total, read_revision(replica_set))
        patch = {"metadata": {"annotations": annotations}, "spec": {"replicas": size}}
        await patch_object(replica_set, patch, context.cluster)
        await self._record_scaling_event(deployment, replica_set, read_replicas(replica_set), size, context)

    async def _record_scaling_event(
        self, deployment: Manifest, replica_set: Manifest, before: int, after: int, context: ControllerContext
    ) -> None:
        if before != after:
            direction = "up" if after > before else "down"
            message = f"Scaled {direction} replica set {replica_set['metadata']['name']} from {before} to {after}"
            await self._events.record(deployment, [EventDraft("ScalingReplicaSet", message)], context)


def _uses_recreate_strategy(deployment: Manifest) -> bool:
    return bool((deployment["spec"].get("strategy") or {}).get("type") == "Recreate")


def _list_owned_replica_sets(deployment: Manifest, cache: InformerCache) -> list[Manifest]:
    uid = deployment["metadata"]["uid"]
    owned = (replica_set for replica_set in cache.list_owned(uid) if replica_set["kind"] == "ReplicaSet")
    return [
        replica_set
        for replica_set in owned
        if (find_controller_reference(replica_set) or {}).get("uid") == uid and not is_being_deleted(replica_set)
    ]


async def _increment_collision_count(deployment: Manifest, desired: Manifest, context: ControllerContext) -> None:
    """Raise collisionCount if the name belongs to a ReplicaSet of another owner or template.

    A ReplicaSet of our own that the cache does not show yet is not a collision.
    """
    existing = await context.cluster.get(
        build_key(REPLICA_SET, deployment["metadata"]["namespace"], desired["metadata"]["name"])
    )
    if existing is None:
        return
    is_ours = (find_controller_reference(existing) or {}).get("uid") == deployment["metadata"]["uid"]
    if not (is_ours and has_same_template(existing, deployment["spec"]["template"])):
        collisions = int((deployment.get("status") or {}).get("collisionCount") or 0)
        await update_status_if_changed(deployment, {"collisionCount": collisions + 1}, context.cluster)


async def _update_revision_annotations(
    deployment: Manifest, new: Manifest, revision: int, bounds: RolloutBounds, context: ControllerContext
) -> bool:
    """Update the annotations that `kubectl rollout history` and `undo` use; return True if the Deployment was
    written."""
    desired = {
        **select_copied_annotations(deployment),
        **build_revision_annotations(bounds.desired, bounds.max_total, revision),
    }
    current_annotations = new["metadata"].get("annotations") or {}
    if (
        any(current_annotations.get(name) != value for name, value in desired.items())
        and read_replicas(new) == bounds.desired
    ):
        await patch_object(new, {"metadata": {"annotations": desired}}, context.cluster)
    elif current_annotations.get(REVISION_ANNOTATION) != str(revision):
        await patch_object(new, {"metadata": {"annotations": {REVISION_ANNOTATION: str(revision)}}}, context.cluster)
    return await _annotate_deployment_revision(deployment, revision, context)


async def _annotate_deployment_revision(deployment: Manifest, revision: int, context: ControllerContext) -> bool:
    if get_annotation(deployment, REVISION_ANNOTATION) == str(revision):
        return False
    mark = {"uid": deployment["metadata"]["uid"], "annotations": {REVISION_ANNOTATION: str(revision)}}
    await context.cluster.patch(key_of(deployment), {"metadata": mark})
    return True


async def _delete_old_replica_sets(deployment: Manifest, old: Sequence[Manifest], context: ControllerContext) -> None:
    """Delete empty old ReplicaSets above `revisionHistoryLimit`."""
    empty = [
        replica_set
        for replica_set in old
        if not read_replicas(replica_set) and not read_status_count(replica_set, "replicas")
    ]
    surplus = len(empty) - int(deployment["spec"].get("revisionHistoryLimit", 10))
    for replica_set in sorted(empty, key=read_revision)[: max(surplus, 0)]:
        await delete_object(replica_set, context.cluster)
