"""Pods of an Application that will not start by themselves.

In: a desk, an Application. Out: sentences. Never: reads more than Pods, and the owners of those that are stuck.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.desk.applications.desk import Desk
from argosy.desk.applications.facts import rows
from argosy.live.stuck_pods import IMAGE_FAILURES, waiting_containers
from argosy.model.application import Application
from argosy.model.errors import ClusterError
from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind, ResourceKey, split_api_version
from argosy.report.wire import mapping, mappings
from argosy.sync.retry import is_resting

POD: Final = GroupKind("", "Pod")
UNSCHEDULED: Final = "Unschedulable"  # k8s: not hopeless: somebody may add a node, or end another Pod
STARTING: Final = frozenset({"ContainerCreating", "PodInitializing", ""})
DEEPEST: Final = 8  # owners above a Pod


async def stuck_pods(desk: Desk, app: Application, reasons: frozenset[str] = IMAGE_FAILURES) -> list[str]:
    """Each Pod below the Application whose image cannot be had, and why; or that waits for another of these reasons."""
    if not app.destination.is_here:
        return []  # its Pods are in another cluster: who waits does so without them
    managed = {row.key for row in rows(app)}
    found = []
    for namespace in sorted({key.namespace for key in managed if key.namespace}):
        for pod in await _pods(desk, namespace):
            told = next((each for each in waiting(pod) if each.reason in reasons), None)
            if told is not None and await _is_below(desk, pod, managed):
                found.append(f"Pod/{pod['metadata']['name']} -n {namespace}: {told}")
    return found


async def find_stuck_reason(desk: Desk, app: Application) -> str:
    """Why the sync that runs cannot succeed; empty where it may, or where none runs."""
    state = app.state
    if state is None or state.progress.is_over:
        return ""
    if app.operation is None:
        return "its operation was removed from the Application"
    if is_resting(state):
        return f"it failed and is tried again: {state.message.partition('. Retrying attempt #')[0]}"
    return next(iter(await stuck_pods(desk, app)), "")


async def _pods(desk: Desk, namespace: str) -> list[Manifest]:
    try:
        return list((await desk.cluster.list(POD, namespace=namespace)).items)
    except ClusterError:
        return []  # who may not see Pods waits without them


class Waiting(str):
    """Why a container does not run, in a sentence."""

    reason = ""


def waiting(pod: Mapping[str, Any]) -> list[Waiting]:
    found = []
    if why := unscheduled(pod):
        told = Waiting(why)
        told.reason = UNSCHEDULED
        found.append(told)
    for container in waiting_containers(pod):
        if container.reason not in STARTING:
            message = f": {container.message}" if container.message else ""
            told = Waiting(f"container {container.name}  {container.reason}{message}")
            told.reason = container.reason
            found.append(told)
    return found


def unscheduled(pod: Mapping[str, Any]) -> str:
    """Why no node takes it; empty where one did, or where nobody has tried."""
    for each in mappings(mapping(pod.get("status")).get("conditions")):
        if each.get("type") == "PodScheduled" and each.get("status") == "False" and each.get("reason") == UNSCHEDULED:
            # k8s: that ending another Pod would not help either is told behind it
            said = str(each.get("message") or "").partition(" preemption:")[0]
            return f"{UNSCHEDULED}: {said or 'no node takes it'}"
    return ""


async def _is_below(desk: Desk, pod: Manifest, managed: set[ResourceKey]) -> bool:
    """Whether an owner, or an owner of that one, is managed."""
    namespace = str(pod["metadata"].get("namespace") or "")
    todo = [(ResourceKey(*POD, namespace, str(pod["metadata"]["name"])), pod)]
    for _ in range(DEEPEST):
        if not todo:
            return False
        key, manifest = todo.pop()
        if key in managed:
            return True
        for owner in mappings(manifest["metadata"].get("ownerReferences")):
            group = split_api_version(str(owner.get("apiVersion") or ""))[0]
            above = ResourceKey(group, str(owner.get("kind")), namespace, str(owner.get("name")))
            if above in managed:
                return True
            if (found := await _get(desk, above)) is not None:
                todo.append((above, found))
    return False


async def _get(desk: Desk, key: ResourceKey) -> Manifest | None:
    try:
        return await desk.cluster.get(key)
    except ClusterError:
        return None
