"""Simulates the ReplicaSet controller.

In: the key of a ReplicaSet. Out: the requested number of Pods, and its status. Never: changes a running Pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from argosy.kube.controller import ControllerContext, Requeue, Watch, map_to_owner
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema import selectors
from argosy.kube.well_known_kinds import POD, REPLICA_SET
from argosy.sandbox.simulators.adoptable_orphan_lookup import OrphanFinder
from argosy.sandbox.simulators.conditional_writes import adopt, requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.event_recorder import EventRecorder
from argosy.sandbox.simulators.owner_references_and_marks import (
    append_simulated_note,
    build_pod,
    enqueue_if_unmarked,
    find_controller_reference,
    hash_to_name_suffix,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.pod_control import create_pods, delete_pods
from argosy.sandbox.simulators.pod_counts import (
    choose_pods_to_delete,
    count_pods,
    is_active,
    is_unprocessed,
    list_owned_pods,
    read_pod_phase,
)
from argosy.sandbox.simulators.reconcile_throttle import ReconcileThrottle
from argosy.sandbox.simulators.timestamps_and_durations import parse_timestamp, seconds_until_deadline

MAX_PODS_PER_BATCH: Final = 100
STATUS_DELAY_SECONDS: Final = 2.0


class ReplicaSetController:
    name = "simulated-replicasets"
    watches = (Watch(REPLICA_SET, enqueue_if_unmarked), Watch(POD, map_to_owner(REPLICA_SET)))

    def __init__(self) -> None:
        self._orphans = OrphanFinder(POD)
        self._events = EventRecorder("replicaset-controller")
        self._throttle = ReconcileThrottle(0.0, 0.0005)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        replica_set = context.cache.get(key)
        if replica_set is None or is_being_deleted(replica_set) or is_simulated_by_other_addon(replica_set):
            self._throttle.forget(key)
            return None
        if (pause := self._throttle.compute_wait(key, context.clock)) > 0:
            return Requeue(pause)
        for orphan in self._orphans.list_matching(replica_set, context.cache):
            if read_pod_phase(orphan) not in ("Succeeded", "Failed"):
                await adopt(orphan, replica_set, context.cluster)
        pods = list_owned_pods(replica_set, context.cache)
        self._throttle.record_reconcile(key, len(pods), context.clock)
        active = [pod for pod in pods if is_active(pod)]
        problem = ""
        if missing := max(_read_desired_replicas(replica_set) - len(active), 0):
            problem = await _create_missing_pods(replica_set, pods, missing, self._events, context)
            if not problem and not (replica_set.get("status") or {}).get("observedGeneration"):
                # the watch events of the Pods trigger the next reconcile, with more to report
                return None
        elif len(active) > _read_desired_replicas(replica_set):
            await _delete_surplus_pods(replica_set, self._events, context)
        elif _should_delay_status(replica_set, active, context.clock.now()):
            return Requeue(STATUS_DELAY_SECONDS)
        return await _update_status(replica_set, active, problem, context)


def _should_delay_status(replica_set: Manifest, active: Sequence[Manifest], now: datetime) -> bool:
    """True if the new Pods are about to start; reporting later saves a write here and one on the Deployment."""
    if (replica_set.get("status") or {}).get("observedGeneration"):
        return False
    creation_times = [parse_timestamp(pod["metadata"]["creationTimestamp"]) for pod in active if is_unprocessed(pod)]
    return any(seconds_until_deadline(created_at, STATUS_DELAY_SECONDS, now) > 0 for created_at in creation_times)


def _read_desired_replicas(replica_set: Manifest) -> int:
    return int(replica_set["spec"].get("replicas", 1))


async def _create_missing_pods(
    replica_set: Manifest, pods: Sequence[Manifest], missing: int, recorder: EventRecorder, context: ControllerContext
) -> str:
    """Create missing Pods; return why they cannot be created, or an empty string.

    Names are deterministic, so that a Pod the cache does not show yet is not created twice.
    """
    taken_names = {str(pod["metadata"]["name"]) for pod in pods}
    new_pods = []
    for name in _generate_pod_names(replica_set):
        if name not in taken_names:
            new_pods.append(build_pod(replica_set["spec"]["template"], replica_set, name))
        if len(new_pods) >= min(missing, MAX_PODS_PER_BATCH):
            break
    return await create_pods(replica_set, new_pods, recorder, context)


def _generate_pod_names(replica_set: Manifest) -> Iterator[str]:
    metadata = replica_set["metadata"]
    number = 0
    while True:
        yield f"{metadata['name']}-{hash_to_name_suffix(metadata['uid'] + '/' + str(number), 5)}"
        number += 1


async def _delete_surplus_pods(replica_set: Manifest, recorder: EventRecorder, context: ControllerContext) -> None:
    """Delete surplus Pods. Lists them from the server, because the cache may still show Pods that were just deleted."""
    uid = replica_set["metadata"]["uid"]
    labels = str(selectors.label_selector_from_wire(replica_set["spec"].get("selector")))
    listing = await context.cluster.list(POD, namespace=replica_set["metadata"]["namespace"], labels=labels)
    active = [
        pod for pod in listing.items if (find_controller_reference(pod) or {}).get("uid") == uid and is_active(pod)
    ]
    surplus = len(active) - _read_desired_replicas(replica_set)
    await delete_pods(replica_set, choose_pods_to_delete(active, max(surplus, 0)), recorder, context)


async def _update_status(
    replica_set: Manifest, active: Sequence[Manifest], problem: str, context: ControllerContext
) -> Requeue | None:
    counts = count_pods(active, float(replica_set["spec"].get("minReadySeconds") or 0), context.clock.now())
    status: dict[str, Any] = {
        "replicas": counts.total,
        "fullyLabeledReplicas": counts.total,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.available,
        "observedGeneration": replica_set["metadata"].get("generation", 1),
        "conditions": _build_failure_conditions(replica_set, problem, format_timestamp(context.clock.now())),
    }
    await update_status_if_changed(replica_set, status, context.cluster)
    waits = [seconds for seconds in (counts.seconds_until_available, 1.0 if problem else None) if seconds is not None]
    return Requeue(min(waits)) if waits else None


def _build_failure_conditions(replica_set: Manifest, problem: str, now: str) -> list[dict[str, Any]] | None:
    if not problem:
        return None
    previous: Manifest = next(iter((replica_set.get("status") or {}).get("conditions") or ()), {})
    transitioned_at = previous.get("lastTransitionTime") or now
    message = append_simulated_note(problem)
    return [
        {
            "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
            "message": message, "lastTransitionTime": transitioned_at,
        }
    ]  # fmt: skip
