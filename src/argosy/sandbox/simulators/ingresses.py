"""Simulates an ingress controller for every ingress class: sets the address in the status.

In: the key of an Ingress. Out: its status. Never: routes a request.
"""

from __future__ import annotations

from argosy.kube.controller import ControllerContext, Requeue, Watch
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import INGRESS
from argosy.sandbox.simulators.conditional_writes import requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.event_recorder import EventDraft, EventRecorder
from argosy.sandbox.simulators.external_addresses import (
    SIMULATED_HOSTNAME,
    build_external_ip,
    compute_provisioning_delay,
)
from argosy.sandbox.simulators.owner_references_and_marks import (
    enqueue_if_unmarked,
    is_being_deleted,
    is_simulated_by_other_addon,
)


class IngressController:
    name = "simulated-ingresses"
    watches = (Watch(INGRESS, enqueue_if_unmarked),)

    def __init__(self) -> None:
        self._events = EventRecorder("ingress-controller")

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        ingress = context.cache.get(key)
        if ingress is None or is_being_deleted(ingress) or is_simulated_by_other_addon(ingress):
            return None
        wait = compute_provisioning_delay(ingress, context.clock.now())
        if wait is None:
            await update_status_if_changed(ingress, {"loadBalancer": None}, context.cluster)
            return None
        if wait > 0:
            return Requeue(wait)
        # k8s: this status has no message, so the hostname says that the address is simulated
        new_status = {"loadBalancer": {"ingress": [{"ip": build_external_ip(ingress), "hostname": SIMULATED_HOSTNAME}]}}
        if await update_status_if_changed(ingress, new_status, context.cluster):
            await self._events.record(ingress, [EventDraft("Sync", "Scheduled for sync")], context)
        return None
