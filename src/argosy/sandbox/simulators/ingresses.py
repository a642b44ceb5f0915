"""Simulates an ingress controller for every ingress class: sets the address in the status.

In: the key of an Ingress. Out: its status. Never: routes a request.
"""

from __future__ import annotations

from argosy.kube.controller import Context, Requeue, Watch
from argosy.kube.names import ResourceKey
from argosy.sandbox.simulators.constants import INGRESS, is_dying, is_played_by_others, unmarked
from argosy.sandbox.simulators.events import Happening, Recorder
from argosy.sandbox.simulators.load_balancers import HOSTNAME, address_of, when_given
from argosy.sandbox.simulators.writes import keep_status, patient


class Ingresses:
    name = "simulated-ingresses"
    watches = (Watch(INGRESS, unmarked),)

    def __init__(self) -> None:
        self._events = Recorder("ingress-controller")

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        ingress = context.cache.get(key)
        if ingress is None or is_dying(ingress) or is_played_by_others(ingress):
            return None
        wait = when_given(ingress, context.clock.now())
        if wait is None:
            await keep_status(ingress, {"loadBalancer": None}, context.cluster)
            return None
        if wait > 0:
            return Requeue(wait)
        # k8s: this status has no message, so the hostname says that the address is simulated
        wanted = {"loadBalancer": {"ingress": [{"ip": address_of(ingress), "hostname": HOSTNAME}]}}
        if await keep_status(ingress, wanted, context.cluster):
            await self._events.tell(ingress, [Happening("Sync", "Scheduled for sync")], context)
        return None
