"""Writes Node heartbeats, because a control plane marks a Node as lost after 40 seconds without one.

In: the key of a simulated Node. Out: its Ready condition, refreshed every 10 seconds. Never: touches a real Node; runs
without a control plane, because it writes forever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from argosy.kube.controller import Context, Requeue, Watch
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.simulators import nodes
from argosy.sandbox.simulators.constants import NODE
from argosy.sandbox.simulators.timestamps import left, moment_of, stamp
from argosy.sandbox.simulators.writes import keep_status, patient

SECONDS: Final = 10.0


def _played(node: Manifest) -> Iterable[ResourceKey]:
    if nodes.is_played(node):
        yield key_of(node)


class Heartbeats:
    name = "simulated-nodes"
    watches = (Watch(NODE, _played),)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        node = context.cache.get(key)
        if node is None or not nodes.is_played(node):
            return None
        known = {each["type"]: each for each in (node.get("status") or {}).get("conditions") or ()}
        ready, now = known.get("Ready") or {}, context.clock.now()
        if ready.get("status") == "True" and (said := ready.get("lastHeartbeatTime")):
            wait = left(moment_of(said), SECONDS, now)
            if wait > 0:
                return Requeue(wait)
        since = ready.get("lastTransitionTime") if ready.get("status") == "True" else None
        times = {"lastHeartbeatTime": stamp(now), "lastTransitionTime": since or stamp(now)}
        conditions: dict[str, Any] = {**known, "Ready": {**nodes.READY, **times}}
        await keep_status(node, {"conditions": list(conditions.values())}, context.cluster)
        return Requeue(SECONDS)
