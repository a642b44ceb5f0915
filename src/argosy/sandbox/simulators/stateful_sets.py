"""Simulates the StatefulSet controller: Pods with stable names and claims, one after another.

In: the key of a StatefulSet. Out: revisions, claims, Pods, its status. Never: starts a step before the previous one is
complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import ClusterError
from argosy.kube.controller import ControllerContext, Requeue, Watch, map_to_owner
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import POD, STATEFUL_SET
from argosy.sandbox.simulators.adoptable_orphan_lookup import OrphanFinder
from argosy.sandbox.simulators.conditional_writes import (
    adopt,
    create_if_absent,
    delete_object,
    is_permanent_rejection,
    patch_object,
    requeue_on_conflict,
    update_status_if_changed,
)
from argosy.sandbox.simulators.controller_revisions import (
    build_revision_name,
    delete_surplus_revisions,
    find_or_create_revision,
    list_owned_revisions,
    read_revision_template,
)
from argosy.sandbox.simulators.event_recorder import EventDraft, EventRecorder
from argosy.sandbox.simulators.owner_references_and_marks import (
    CONTROLLER_REVISION,
    enqueue_if_unmarked,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.pod_counts import (
    FINISHED_PHASES,
    count_pods,
    is_available,
    is_ready,
    list_owned_pods,
    read_pod_phase,
)
from argosy.sandbox.simulators.stateful_set_pod_manifests import (
    build_claims,
    build_non_controller_reference,
    build_stateful_pod,
    creates_pods_in_order,
    list_ordinals,
    read_ordinal,
    read_partition,
    read_pod_revision,
    uses_rolling_update,
)

REJECTED_RETRY_SECONDS: Final = 1.0


@dataclass(frozen=True)
class StatefulSetRevisions:
    """The revision of the last complete rollout (current) and the one to roll out (update)."""

    current: str
    update: str
    templates: Mapping[str, Manifest]


class StatefulSetController:
    name = "simulated-statefulsets"
    watches = (
        Watch(STATEFUL_SET, enqueue_if_unmarked),
        Watch(POD, map_to_owner(STATEFUL_SET)),
        Watch(CONTROLLER_REVISION, map_to_owner(STATEFUL_SET)),
    )

    def __init__(self) -> None:
        self._orphans = OrphanFinder(POD)
        self._events = EventRecorder("statefulset-controller")

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        stateful_set = context.cache.get(key)
        if stateful_set is None or is_being_deleted(stateful_set) or is_simulated_by_other_addon(stateful_set):
            return None
        for orphan in self._orphans.list_matching(stateful_set, context.cache):
            if read_ordinal(orphan, stateful_set) >= 0:
                await adopt(orphan, stateful_set, context.cluster)
        revisions = await _load_revisions(stateful_set, context)
        if revisions is None:
            return None
        pods = {read_ordinal(pod, stateful_set): pod for pod in list_owned_pods(stateful_set, context.cache)}
        problem = ""
        try:
            await _sync_pods(stateful_set, pods, revisions, self._events, context)
        except ClusterError as error:
            if not is_permanent_rejection(error):
                raise
            problem = error.message
            event = EventDraft("FailedCreate", f"create Pod in StatefulSet {key.name} failed error: {problem}", True)
            await self._events.record(stateful_set, [event], context)
        requeue = await _update_status(stateful_set, list(pods.values()), revisions, context)
        return Requeue(REJECTED_RETRY_SECONDS) if problem else requeue


# -- revisions -----------------------------------------------------------------------------------------------------


async def _load_revisions(stateful_set: Manifest, context: ControllerContext) -> StatefulSetRevisions | None:
    """Return the revisions, or None if the newest was just created: its watch event triggers the next reconcile."""
    revisions = list_owned_revisions(stateful_set, context.cache)
    if await find_or_create_revision(stateful_set, revisions, context) is None:
        return None
    update_name, templates = (
        build_revision_name(stateful_set),
        {str(item["metadata"]["name"]): read_revision_template(item) for item in revisions},
    )
    current = str((stateful_set.get("status") or {}).get("currentRevision") or update_name)
    current = current if current in templates else update_name
    used_names = {
        current,
        update_name,
        *(read_pod_revision(item) for item in list_owned_pods(stateful_set, context.cache)),
    }
    await delete_surplus_revisions(stateful_set, revisions, used_names, context)
    return StatefulSetRevisions(current, update_name, templates)


# -- steps ---------------------------------------------------------------------------------------------------------


async def _sync_pods(
    stateful_set: Manifest,
    pods: Mapping[int, Manifest],
    revisions: StatefulSetRevisions,
    recorder: EventRecorder,
    context: ControllerContext,
) -> None:
    """k8s: create missing Pods from the lowest ordinal, then delete surplus and old Pods from the highest."""
    is_complete = await _create_missing_pods(stateful_set, pods, revisions, recorder, context)
    if (
        is_complete
        and await _delete_surplus_pods(stateful_set, pods, recorder, context)
        and uses_rolling_update(stateful_set)
    ):
        await _delete_next_outdated_pod(stateful_set, pods, revisions, recorder, context)


async def _create_missing_pods(
    stateful_set: Manifest,
    pods: Mapping[int, Manifest],
    revisions: StatefulSetRevisions,
    recorder: EventRecorder,
    context: ControllerContext,
) -> bool:
    """Create missing Pods; return True if all exist (and are available, in an ordered set)."""
    is_complete = True
    for ordinal in list_ordinals(stateful_set):
        pod = pods.get(ordinal)
        if pod is None:
            await _create_pod(stateful_set, ordinal, revisions, recorder, context)
        elif read_pod_phase(pod) in FINISHED_PHASES and not is_being_deleted(pod):
            await _delete_pod(stateful_set, pod, recorder, context)
        elif not is_being_deleted(pod) and (
            not creates_pods_in_order(stateful_set) or _is_pod_available(pod, stateful_set, context)
        ):
            continue
        is_complete = False
        if creates_pods_in_order(stateful_set):
            return False
    return is_complete


async def _create_pod(
    stateful_set: Manifest,
    ordinal: int,
    revisions: StatefulSetRevisions,
    recorder: EventRecorder,
    context: ControllerContext,
) -> None:
    for claim in build_claims(stateful_set, ordinal):
        await create_if_absent(claim, context.cluster)
    is_below_partition = uses_rolling_update(stateful_set) and ordinal < read_partition(stateful_set)
    revision = revisions.current if is_below_partition else revisions.update
    pod = build_stateful_pod(stateful_set, ordinal, revisions.templates[revision], revision)
    if await create_if_absent(pod, context.cluster):
        await recorder.record(stateful_set, [_build_event(stateful_set, pod, "create")], context)


def _build_event(stateful_set: Manifest, pod: Manifest, verb: str) -> EventDraft:
    message = f"{verb} Pod {pod['metadata']['name']} in StatefulSet {stateful_set['metadata']['name']} successful"
    return EventDraft(f"Successful{verb.capitalize()}", message)


async def _delete_pod(
    stateful_set: Manifest, pod: Manifest, recorder: EventRecorder, context: ControllerContext
) -> None:
    await delete_object(pod, context.cluster)
    await recorder.record(stateful_set, [_build_event(stateful_set, pod, "delete")], context)


async def _delete_surplus_pods(
    stateful_set: Manifest, pods: Mapping[int, Manifest], recorder: EventRecorder, context: ControllerContext
) -> bool:
    """Delete Pods outside the ordinals; return True if there is none."""
    surplus_ordinals = sorted(
        (number for number in pods if number >= 0 and number not in list_ordinals(stateful_set)), reverse=True
    )
    for ordinal in surplus_ordinals:
        if not is_being_deleted(pods[ordinal]):
            await _transfer_claims_to_pod(stateful_set, ordinal, pods[ordinal], context)
            await _delete_pod(stateful_set, pods[ordinal], recorder, context)
        if creates_pods_in_order(stateful_set):
            break
    return not surplus_ordinals


async def _transfer_claims_to_pod(
    stateful_set: Manifest, ordinal: int, pod: Manifest, context: ControllerContext
) -> None:
    """Make the Pod own its claims if the retention policy deletes them on scale-down."""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    if policy.get("whenScaled") != "Delete":
        return
    for claim in build_claims(stateful_set, ordinal):
        live_claim = await context.cluster.get(key_of(claim))
        if live_claim is not None:
            await patch_object(
                live_claim, {"metadata": {"ownerReferences": [build_non_controller_reference(pod)]}}, context.cluster
            )


async def _delete_next_outdated_pod(
    stateful_set: Manifest,
    pods: Mapping[int, Manifest],
    revisions: StatefulSetRevisions,
    recorder: EventRecorder,
    context: ControllerContext,
) -> None:
    """Delete the Pod with the highest ordinal that has an old revision, one at a time."""
    for ordinal in reversed(range(read_partition(stateful_set), list_ordinals(stateful_set).stop)):
        pod = pods[ordinal]
        if is_being_deleted(pod):
            return
        if read_pod_revision(pod) != revisions.update:
            await _delete_pod(stateful_set, pod, recorder, context)
            return
        if not _is_pod_available(pod, stateful_set, context):
            return


def _is_pod_available(pod: Manifest, stateful_set: Manifest, context: ControllerContext) -> bool:
    return is_available(pod, float(stateful_set["spec"].get("minReadySeconds") or 0), context.clock.now())


# -- status --------------------------------------------------------------------------------------------------------


async def _update_status(
    stateful_set: Manifest, pods: Sequence[Manifest], revisions: StatefulSetRevisions, context: ControllerContext
) -> Requeue | None:
    counts = count_pods(pods, float(stateful_set["spec"].get("minReadySeconds") or 0), context.clock.now())
    alive = [pod for pod in pods if not is_being_deleted(pod)]
    updated = sum(1 for pod in alive if read_pod_revision(pod) == revisions.update)
    current = sum(1 for pod in alive if read_pod_revision(pod) == revisions.current)
    desired = len(list_ordinals(stateful_set))
    is_done = (
        uses_rolling_update(stateful_set) and updated == desired == len(pods) and sum(map(is_ready, pods)) == desired
    )
    status: dict[str, Any] = {
        "observedGeneration": stateful_set["metadata"].get("generation", 1),
        "replicas": counts.total,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.available,
        "updatedReplicas": updated,
        "currentReplicas": updated if is_done else current,
        "currentRevision": revisions.update if is_done else revisions.current,
        "updateRevision": revisions.update,
    }
    await update_status_if_changed(stateful_set, status, context.cluster)
    return Requeue(counts.seconds_until_available) if counts.seconds_until_available is not None else None
