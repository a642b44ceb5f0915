"""Simulates the scheduler: binds a Pod to a Node, or sets the reason why none fits; waiting Pods are retried.

In: a Pod without a Node. Out: a binding or a condition. Never: binds a Pod to a real Node.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from argosy.errors import ArgosyError
from argosy.kube.controller import Cache, Context
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.simulators import pod_status, scheduling
from argosy.sandbox.simulators.constants import CLAIM, NODE, is_dying, own_key
from argosy.sandbox.simulators.events import Happening, Recorder
from argosy.sandbox.simulators.fault_injection import Fault, Wishes
from argosy.sandbox.simulators.node_allocation import Ledger
from argosy.sandbox.simulators.timestamps import stamp
from argosy.sandbox.simulators.volumes import SELECTED_NODE, claims_of, waits_for_consumer
from argosy.sandbox.simulators.writes import change, keep_status

AT_A_TIME: Final = 50  # waiting Pods to retry: free resources are soon taken
WAITS_FOR_VOLUME: Final = "waiting for a volume to be created"


class Scheduler:
    """The in-memory state only decides which Pods to enqueue; after a restart every Pod is reconciled anyway."""

    def __init__(self) -> None:
        self._ledger = Ledger()
        self._homeless: dict[ResourceKey, None] = {}
        self._events = Recorder("default-scheduler")

    def open(self, cache: Cache) -> None:
        self._ledger.open(cache)

    def forget(self, key: ResourceKey) -> None:
        self._homeless.pop(key, None)

    def waiting(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._homeless)

    def freed(self, pod: Manifest) -> Iterable[ResourceKey]:
        """Enqueue waiting Pods that may fit now that this Pod has ended or is gone."""
        is_freed = self._ledger.look(key_of(pod))
        return tuple(islice(self._homeless, AT_A_TIME)) if is_freed else ()

    async def schedule(self, pod: Manifest, wishes: Wishes, context: Context) -> None:
        key, found = key_of(pod), context.cache.list(NODE)
        node, why = scheduling.choose(pod, found, self._ledger.taken)
        if wishes.fail is Fault.UNSCHEDULABLE:
            node, why = None, scheduling.refused_by_all(found, "Insufficient cpu")
        if node is not None:
            name = str(node["metadata"]["name"])
            self._ledger.take(key, name, scheduling.needs_of(pod))
            try:
                why = await _unbound(pod, name, context)
                if not why:
                    await self._bind(pod, name, context)
                    return
            except ArgosyError:
                self._ledger.leave(key)
                raise
            self._ledger.leave(key)
            why = why if why == WAITS_FOR_VOLUME else scheduling.refused_before(found, why)
        self._homeless[key] = None
        wanted = pod_status.unscheduled(pod, why, stamp(context.clock.now()))
        if await keep_status(pod, wanted, context.cluster) and why != WAITS_FOR_VOLUME:
            await self._events.tell(pod, [Happening("FailedScheduling", why, is_warning=True)], context)

    async def _bind(self, pod: Manifest, node: str, context: Context) -> None:
        metadata = pod["metadata"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await context.cluster.create(binding, subresource_of=key_of(pod))
        message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {node}"
        await self._events.tell(pod, [Happening("Scheduled", message)], context)


async def _unbound(pod: Manifest, node: str, context: Context) -> str:
    """Return why the Pod's claims prevent scheduling, or an empty string.

    Sets the selected Node on claims that wait for their first consumer.
    """
    waits = False
    for name in claims_of(pod):
        claim = context.cache.get(own_key(CLAIM, pod["metadata"]["namespace"], name))
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if is_dying(claim):
            return f'persistentvolumeclaim "{name}" is being deleted'
        if (claim.get("status") or {}).get("phase") == "Bound":
            continue
        if not waits_for_consumer(claim, context.cache):
            return "pod has unbound immediate PersistentVolumeClaims"
        waits = True
        if SELECTED_NODE not in (claim["metadata"].get("annotations") or {}):
            await change(claim, {"metadata": {"annotations": {SELECTED_NODE: node}}}, context.cluster)
    return WAITS_FOR_VOLUME if waits else ""
