"""Simulates the DaemonSet controller: one Pod on each eligible Node.

In: the key of a DaemonSet. Out: revisions, Pods, its status. Never: creates a Pod for a real Node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from argosy.kube.controller import ControllerContext, Requeue, Watch, map_to_owner
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import DAEMON_SET, NODE, POD
from argosy.sandbox.simulators.conditional_writes import requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.controller_revisions import (
    REVISION_HASH_LABEL,
    delete_surplus_revisions,
    find_or_create_revision,
    list_owned_revisions,
    read_revision_hash,
)
from argosy.sandbox.simulators.daemon_set_pod_placement import (
    DaemonPodPlacement,
    build_daemon_pod,
    compute_placement,
    has_revision,
    is_pod_available,
    read_rolling_update_limits,
)
from argosy.sandbox.simulators.event_recorder import EventDraft, EventRecorder
from argosy.sandbox.simulators.owner_references_and_marks import (
    CONTROLLER_REVISION,
    enqueue_if_unmarked,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.pod_control import create_pods, delete_pods
from argosy.sandbox.simulators.pod_counts import FINISHED_PHASES, count_pods, list_owned_pods, read_pod_phase


class DaemonSetController:
    name = "simulated-daemonsets"

    def __init__(self) -> None:
        self._daemon_set_keys: set[ResourceKey] = set()
        self._events = EventRecorder("daemonset-controller")
        self.watches = (
            Watch(DAEMON_SET, enqueue_if_unmarked),
            Watch(POD, map_to_owner(DAEMON_SET)),
            Watch(CONTROLLER_REVISION, map_to_owner(DAEMON_SET)),
            Watch(NODE, self._enqueue_all),
        )

    def _enqueue_all(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._daemon_set_keys)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        daemon_set = context.cache.get(key)
        self._daemon_set_keys.discard(key)
        if daemon_set is None or is_being_deleted(daemon_set) or is_simulated_by_other_addon(daemon_set):
            return None
        self._daemon_set_keys.add(key)
        revisions = list_owned_revisions(daemon_set, context.cache)
        revision = await find_or_create_revision(daemon_set, revisions, context)
        if revision is None:
            return None
        revision_hash = read_revision_hash(str(revision["metadata"]["name"]))
        pods = list_owned_pods(daemon_set, context.cache)
        placement = compute_placement(daemon_set, context.cache.list(NODE), pods)
        problem = await self._sync_pods(daemon_set, placement, revision_hash, context)
        used_revisions = {
            f"{daemon_set['metadata']['name']}-{item['metadata'].get('labels', {}).get(REVISION_HASH_LABEL)}"
            for item in pods
        }
        await delete_surplus_revisions(daemon_set, revisions, {revision["metadata"]["name"], *used_revisions}, context)
        wait = await _update_status(daemon_set, placement, revision_hash, context)
        waits = [item for item in (wait, 1.0 if problem else None) if item is not None]
        return Requeue(min(waits)) if waits else None

    async def _sync_pods(
        self, daemon_set: Manifest, placement: DaemonPodPlacement, revision_hash: str, context: ControllerContext
    ) -> str:
        """Create and delete Pods; return why Pods could not be created, or an empty string."""
        await delete_pods(daemon_set, placement.stray_pods, self._events, context)
        for node in placement.target_nodes:
            for pod in placement.pods_by_node.get(node, ()):
                if read_pod_phase(pod) in FINISHED_PHASES and not is_being_deleted(pod):
                    pod_location = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on node {node}"
                    message = f"Found failed daemon pod {pod_location}, will try to kill it"
                    await self._events.record(
                        daemon_set, [EventDraft("FailedDaemonPod", message, is_warning=True)], context
                    )
                    await delete_pods(daemon_set, [pod], self._events, context)
        uncovered_nodes = [node for node in placement.target_nodes if not placement.pods_by_node.get(node)]
        problem = await self._create_pods(daemon_set, uncovered_nodes, placement, revision_hash, context)
        if (daemon_set["spec"].get("updateStrategy") or {}).get("type") != "OnDelete":
            problem = await self._roll_out(daemon_set, placement, revision_hash, context) or problem
        return problem

    async def _roll_out(
        self, daemon_set: Manifest, placement: DaemonPodPlacement, revision_hash: str, context: ControllerContext
    ) -> str:
        """Replace Pods of old revisions within the limits of the rolling update."""
        unavailable_budget, surge_budget = read_rolling_update_limits(daemon_set, len(placement.target_nodes))
        is_surging = surge_budget > 0
        now, outdated = context.clock.now(), []
        for node in placement.target_nodes:
            node_pods = [pod for pod in placement.pods_by_node.get(node, ()) if not is_being_deleted(pod)]
            old_pods = [pod for pod in node_pods if not has_revision(pod, revision_hash)]
            available_pods = [pod for pod in node_pods if is_pod_available(pod, daemon_set, now)]
            if any(has_revision(pod, revision_hash) for pod in available_pods):
                await delete_pods(daemon_set, old_pods, self._events, context)
            elif len(old_pods) < len(node_pods) or not node_pods:  # the new Pod is starting
                surge_budget, unavailable_budget = surge_budget - 1, unavailable_budget - 1
            elif not available_pods and not is_surging:
                unavailable_budget -= 1
                # k8s: an unavailable Pod may be replaced at once
                await delete_pods(daemon_set, old_pods, self._events, context)
            else:
                outdated.append((node, old_pods))
        if is_surging:
            return await self._create_pods(
                daemon_set, [node for node, _ in outdated[: max(surge_budget, 0)]], placement, revision_hash, context
            )
        for _, old_pods in outdated[: max(unavailable_budget, 0)]:
            await delete_pods(daemon_set, old_pods, self._events, context)
        return ""

    async def _create_pods(
        self,
        daemon_set: Manifest,
        node_names: Sequence[str],
        placement: DaemonPodPlacement,
        revision_hash: str,
        context: ControllerContext,
    ) -> str:
        taken_names = {
            node: [str(pod["metadata"]["name"]) for pod in placement.pods_by_node.get(node, ())] for node in node_names
        }
        return await create_pods(
            daemon_set,
            [build_daemon_pod(daemon_set, node, revision_hash, taken_names[node]) for node in node_names],
            self._events,
            context,
        )


async def _update_status(
    daemon_set: Manifest, placement: DaemonPodPlacement, revision_hash: str, context: ControllerContext
) -> float | None:
    """k8s: every Node counts once, however many Pods it has."""
    representative_pods = [
        _find_representative_pod(placement.pods_by_node.get(node, ()), revision_hash) for node in placement.target_nodes
    ]
    existing_pods = [pod for pod in representative_pods if pod is not None]
    counts = count_pods(existing_pods, float(daemon_set["spec"].get("minReadySeconds") or 0), context.clock.now())
    desired_count = len(placement.target_nodes)
    status: dict[str, Any] = {
        "currentNumberScheduled": len(existing_pods),
        "desiredNumberScheduled": desired_count,
        "numberMisscheduled": len({id(pod) for pod in placement.stray_pods if not is_being_deleted(pod)}),
        "numberReady": counts.ready,
        "numberAvailable": counts.available,
        "numberUnavailable": desired_count - counts.available,
        "updatedNumberScheduled": sum(1 for pod in existing_pods if has_revision(pod, revision_hash)),
        "observedGeneration": daemon_set["metadata"].get("generation", 1),
    }
    await update_status_if_changed(daemon_set, status, context.cluster)
    return counts.seconds_until_available


def _find_representative_pod(pods: Sequence[Manifest], revision_hash: str) -> Manifest | None:
    alive = [pod for pod in pods if not is_being_deleted(pod)]
    return next((pod for pod in alive if has_revision(pod, revision_hash)), next(iter(alive), None))
