"""Simulates the scheduler: binds a Pod to a Node, or sets the reason why none fits; waiting Pods are retried.

In: a Pod without a Node. Out: a binding or a condition. Never: binds a Pod to a real Node.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from argosy.errors import ArgosyError
from argosy.kube.controller import ControllerContext, InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NODE, PERSISTENT_VOLUME_CLAIM
from argosy.sandbox.simulators import node_selection, pod_status
from argosy.sandbox.simulators.conditional_writes import patch_object, update_status_if_changed
from argosy.sandbox.simulators.event_recorder import EventDraft, EventRecorder
from argosy.sandbox.simulators.node_allocations import NodeAllocations
from argosy.sandbox.simulators.owner_references_and_marks import build_key, is_being_deleted
from argosy.sandbox.simulators.simulation_annotations import InjectedFault, SimulationSettings
from argosy.sandbox.simulators.volume_selection import SELECTED_NODE_ANNOTATION, list_claim_names, waits_for_consumer

MAX_RETRIED_PODS: Final = 50  # waiting Pods to retry: free resources are soon taken
WAITING_FOR_VOLUME: Final = "waiting for a volume to be created"


class Scheduler:
    """The in-memory state only decides which Pods to enqueue; after a restart every Pod is reconciled anyway."""

    def __init__(self) -> None:
        self._allocations = NodeAllocations()
        self._unscheduled: dict[ResourceKey, None] = {}
        self._events = EventRecorder("default-scheduler")

    def use_cache(self, cache: InformerCache) -> None:
        self._allocations.use_cache(cache)

    def forget(self, key: ResourceKey) -> None:
        self._unscheduled.pop(key, None)

    def enqueue_unscheduled(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._unscheduled)

    def enqueue_if_freed(self, pod: Manifest) -> Iterable[ResourceKey]:
        """Enqueue waiting Pods that may fit now that this Pod has ended or is gone."""
        is_freed = self._allocations.refresh(key_of(pod))
        return tuple(islice(self._unscheduled, MAX_RETRIED_PODS)) if is_freed else ()

    async def schedule(self, pod: Manifest, settings: SimulationSettings, context: ControllerContext) -> None:
        key, all_nodes = key_of(pod), context.cache.list(NODE)
        node, reason = node_selection.choose_node(pod, all_nodes, self._allocations.get_allocated)
        if settings.fault is InjectedFault.UNSCHEDULABLE:
            node, reason = None, node_selection.describe_common_rejection(all_nodes, "Insufficient cpu")
        if node is not None:
            name = str(node["metadata"]["name"])
            self._allocations.allocate(key, name, node_selection.compute_pod_requests(pod))
            try:
                reason = await _check_claims(pod, name, context)
                if not reason:
                    await self._bind(pod, name, context)
                    return
            except ArgosyError:
                self._allocations.release(key)
                raise
            self._allocations.release(key)
            reason = (
                reason if reason == WAITING_FOR_VOLUME else node_selection.describe_precheck_failure(all_nodes, reason)
            )
        self._unscheduled[key] = None
        new_status = pod_status.build_unschedulable_status(pod, reason, format_timestamp(context.clock.now()))
        if await update_status_if_changed(pod, new_status, context.cluster) and reason != WAITING_FOR_VOLUME:
            await self._events.record(pod, [EventDraft("FailedScheduling", reason, is_warning=True)], context)

    async def _bind(self, pod: Manifest, node: str, context: ControllerContext) -> None:
        metadata = pod["metadata"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await context.cluster.create(binding, subresource_of=key_of(pod))
        message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {node}"
        await self._events.record(pod, [EventDraft("Scheduled", message)], context)


async def _check_claims(pod: Manifest, node_name: str, context: ControllerContext) -> str:
    """Return why the Pod's claims prevent scheduling, or an empty string.

    Sets the selected Node on claims that wait for their first consumer.
    """
    is_waiting = False
    for name in list_claim_names(pod):
        claim = context.cache.get(build_key(PERSISTENT_VOLUME_CLAIM, pod["metadata"]["namespace"], name))
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if is_being_deleted(claim):
            return f'persistentvolumeclaim "{name}" is being deleted'
        if (claim.get("status") or {}).get("phase") == "Bound":
            continue
        if not waits_for_consumer(claim, context.cache):
            return "pod has unbound immediate PersistentVolumeClaims"
        is_waiting = True
        if SELECTED_NODE_ANNOTATION not in (claim["metadata"].get("annotations") or {}):
            await patch_object(
                claim, {"metadata": {"annotations": {SELECTED_NODE_ANNOTATION: node_name}}}, context.cluster
            )
    return WAITING_FOR_VOLUME if is_waiting else ""
