"""Writes Node heartbeats, because a control plane marks a Node as lost after 40 seconds without one.

In: the key of a simulated Node. Out: its Ready condition, refreshed every 10 seconds. Never: touches a real Node; runs
without a control plane, because it writes forever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from argosy.kube.controller import ControllerContext, Requeue, Watch
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NODE
from argosy.sandbox.simulators import node_and_storage_class_manifests
from argosy.sandbox.simulators.conditional_writes import requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.timestamps_and_durations import parse_timestamp, seconds_until_deadline

HEARTBEAT_INTERVAL_SECONDS: Final = 10.0


def _enqueue_if_simulated(node: Manifest) -> Iterable[ResourceKey]:
    if node_and_storage_class_manifests.is_simulated_node(node):
        yield key_of(node)


class NodeHeartbeatController:
    name = "simulated-nodes"
    watches = (Watch(NODE, _enqueue_if_simulated),)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        node = context.cache.get(key)
        if node is None or not node_and_storage_class_manifests.is_simulated_node(node):
            return None
        conditions_by_type = {
            condition["type"]: condition for condition in (node.get("status") or {}).get("conditions") or ()
        }
        ready, now = conditions_by_type.get("Ready") or {}, context.clock.now()
        if ready.get("status") == "True" and (last_heartbeat := ready.get("lastHeartbeatTime")):
            wait = seconds_until_deadline(parse_timestamp(last_heartbeat), HEARTBEAT_INTERVAL_SECONDS, now)
            if wait > 0:
                return Requeue(wait)
        transitioned_at = ready.get("lastTransitionTime") if ready.get("status") == "True" else None
        times = {
            "lastHeartbeatTime": format_timestamp(now),
            "lastTransitionTime": transitioned_at or format_timestamp(now),
        }
        new_conditions: dict[str, Any] = {
            **conditions_by_type,
            "Ready": {**node_and_storage_class_manifests.READY_CONDITION, **times},
        }
        await update_status_if_changed(node, {"conditions": list(new_conditions.values())}, context.cluster)
        return Requeue(HEARTBEAT_INTERVAL_SECONDS)
