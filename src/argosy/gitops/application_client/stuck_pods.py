"""Finds Pods of an Application that will not start by themselves.

In: an ApplicationService, an Application. Out: sentences. Never: reads more than Pods and the owners of stuck ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

from argosy.errors import ClusterError
from argosy.gitops.application import Application, Progress
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.summary import rows
from argosy.gitops.live.stuck_pods import IMAGE_FAILURES, is_image_current, is_old_replica_set, waiting_containers
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.gitops.sync.retry import is_resting
from argosy.kube.names import GroupKind, ResourceKey, split_api_version
from argosy.kube.objects import Manifest

POD: Final = GroupKind("", "Pod")
UNSCHEDULED: Final = "Unschedulable"  # k8s: may pass: a node may be added, or another Pod may end
# Reasons for which a running sync may never end; some of them pass by themselves.
NOT_STARTING: Final = IMAGE_FAILURES | {
    "ErrImagePull", "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
    UNSCHEDULED,
}  # fmt: skip
STARTING: Final = frozenset({"ContainerCreating", "PodInitializing", ""})
DEEPEST: Final = 8  # levels of owners above a Pod


async def stuck_pods(
    desk: Desk,
    app: Application,
    reasons: frozenset[str] = IMAGE_FAILURES,
    roots: Set[ResourceKey] | None = None,
) -> list[str]:
    """Describe each Pod below the Application whose image cannot be pulled, or that waits for one of these reasons.

    `roots`: only below these objects. Pods that are being replaced, e.g. those of an old template, are ignored.
    """
    if not app.destination.is_here:
        return []  # Pods in another cluster are not checked
    managed = {row.key for row in rows(app)} if roots is None else roots
    descriptions = []
    for namespace in sorted({key.namespace for key in managed if key.namespace}):
        for pod in await _pods(desk, namespace):
            waits = [wait for wait in waiting(pod) if wait.reason in reasons]
            if not waits or pod["metadata"].get("deletionTimestamp"):
                continue
            if (owners := await _find_owners(desk, pod, managed)) is None:
                continue
            if (wait := next((wait for wait in waits if _is_current(pod, wait, owners)), None)) is not None:
                descriptions.append(f"Pod/{pod['metadata']['name']} -n {namespace}: {wait}")
    return descriptions


def _is_current(pod: Manifest, wait: Waiting, owners: list[Manifest]) -> bool:
    return wait.reason not in IMAGE_FAILURES or is_image_current(pod, wait.container, owners)


async def find_stuck_reason(desk: Desk, app: Application) -> str:
    """Explain why the running sync cannot succeed; empty if it can, or if none is running."""
    state = app.state
    if state is None or state.progress.is_over:
        return ""
    if app.operation is None:
        return "its operation was removed from the Application"
    if is_resting(state):
        return f"it failed and will be retried: {state.message.partition('. Retrying attempt #')[0]}"
    unfinished = {result.key for result in state.results if result.progress is not Progress.SUCCEEDED}
    return next(iter(await stuck_pods(desk, app, roots=unfinished)), "")


async def _pods(desk: Desk, namespace: str) -> list[Manifest]:
    try:
        return list((await desk.cluster.list(POD, namespace=namespace)).items)
    except ClusterError:
        return []  # no permission to list Pods


class Waiting(str):
    """Sentence that explains why a container is not running."""

    reason = ""
    container = ""


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
            told.reason, told.container = container.reason, container.name
            found.append(told)
    return found


def unscheduled(pod: Mapping[str, Any]) -> str:
    """Explain why no node accepts the Pod; empty if it is scheduled or was not tried yet."""
    for each in mappings(mapping(pod.get("status")).get("conditions")):
        if each.get("type") == "PodScheduled" and each.get("status") == "False" and each.get("reason") == UNSCHEDULED:
            # k8s: drop the part about preemption
            said = str(each.get("message") or "").partition(" preemption:")[0]
            return f"{UNSCHEDULED}: {said or 'no node accepts it'}"
    return ""


async def _find_owners(desk: Desk, pod: Manifest, managed: Set[ResourceKey]) -> list[Manifest] | None:
    """Return the owners of a Pod, starting at a managed object; unreadable ones are left out.

    None if no owner is managed, or if the Pod belongs to an old ReplicaSet.
    """
    namespace = str(pod["metadata"].get("namespace") or "")
    pod_key = ResourceKey(*POD, namespace, str(pod["metadata"]["name"]))
    if pod_key in managed:
        return [pod]
    todo: list[tuple[Manifest, list[Manifest]]] = [(pod, [])]
    for _ in range(DEEPEST):
        if not todo:
            return None
        manifest, owners = todo.pop()
        for reference in mappings(manifest["metadata"].get("ownerReferences")):
            group = split_api_version(str(reference.get("apiVersion") or ""))[0]
            key = ResourceKey(group, str(reference.get("kind")), namespace, str(reference.get("name")))
            owner = await _get(desk, key)
            if owner is not None and is_old_replica_set(manifest, owner):
                continue
            above = [owner, *owners] if owner is not None else owners
            if key in managed:
                return above
            if owner is not None:
                todo.append((owner, above))
    return None


async def _get(desk: Desk, key: ResourceKey) -> Manifest | None:
    try:
        return await desk.cluster.get(key)
    except ClusterError:
        return None
