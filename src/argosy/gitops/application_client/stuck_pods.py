"""Finds Pods of an Application that will not start by themselves.

In: an ApplicationService, an Application. Out: sentences. Never: reads more than Pods and the owners of stuck ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

from argosy.errors import ClusterError
from argosy.gitops.application import Application, OperationPhase
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.status_summary import list_rows
from argosy.gitops.live.stuck_containers import (
    IMAGE_FAILURES,
    is_image_current,
    is_old_replica_set,
    list_waiting_containers,
)
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.gitops.sync.retry import is_waiting_for_retry
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey, split_api_version
from argosy.kube.well_known_kinds import POD

UNSCHEDULABLE_REASON: Final = "Unschedulable"  # k8s: may pass: a node may be added, or another Pod may end
# Reasons for which a running sync may never end; some of them pass by themselves.
NOT_STARTING_REASONS: Final = IMAGE_FAILURES | {
    "ErrImagePull", "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
    UNSCHEDULABLE_REASON,
}  # fmt: skip
STARTING_REASONS: Final = frozenset({"ContainerCreating", "PodInitializing", ""})
MAX_OWNER_LEVELS: Final = 8  # levels of owners above a Pod


async def describe_stuck_pods(
    service: ApplicationService,
    app: Application,
    reasons: frozenset[str] = IMAGE_FAILURES,
    roots: Set[ResourceKey] | None = None,
) -> list[str]:
    """Describe each Pod below the Application whose image cannot be pulled, or that waits for one of these reasons.

    `roots`: only below these objects. Pods that are being replaced, e.g. those of an old template, are ignored.
    """
    if not app.destination.is_in_cluster:
        return []  # Pods in another cluster are not checked
    managed = {row.key for row in list_rows(app)} if roots is None else roots
    descriptions = []
    for namespace in sorted({key.namespace for key in managed if key.namespace}):
        for pod in await _list_pods(service, namespace):
            waits = [wait for wait in list_waiting_reasons(pod) if wait.reason in reasons]
            if not waits or pod["metadata"].get("deletionTimestamp"):
                continue
            if (owners := await _find_owners(service, pod, managed)) is None:
                continue
            if (
                wait := next((wait for wait in waits if _is_wait_of_current_image(pod, wait, owners)), None)
            ) is not None:
                descriptions.append(f"Pod/{pod['metadata']['name']} -n {namespace}: {wait}")
    return descriptions


def _is_wait_of_current_image(pod: Manifest, wait: WaitingReason, owners: list[Manifest]) -> bool:
    return wait.reason not in IMAGE_FAILURES or is_image_current(pod, wait.container, owners)


async def find_stuck_sync_reason(service: ApplicationService, app: Application) -> str:
    """Explain why the running sync cannot succeed; empty if it can, or if none is running."""
    state = app.state
    if state is None or state.phase.is_over:
        return ""
    if app.operation is None:
        return "its operation was removed from the Application"
    if is_waiting_for_retry(state):
        return f"it failed and will be retried: {state.message.partition('. Retrying attempt #')[0]}"
    unfinished = {result.key for result in state.results if result.hook_phase is not OperationPhase.SUCCEEDED}
    return next(iter(await describe_stuck_pods(service, app, roots=unfinished)), "")


async def _list_pods(service: ApplicationService, namespace: str) -> list[Manifest]:
    try:
        return list((await service.cluster.list(POD, namespace=namespace)).items)
    except ClusterError:
        return []  # no permission to list Pods


class WaitingReason(str):
    """Sentence that explains why a container is not running."""

    reason = ""
    container = ""


def list_waiting_reasons(pod: Mapping[str, Any]) -> list[WaitingReason]:
    reasons = []
    if unschedulable := describe_unschedulable(pod):
        waiting_reason = WaitingReason(unschedulable)
        waiting_reason.reason = UNSCHEDULABLE_REASON
        reasons.append(waiting_reason)
    for container in list_waiting_containers(pod):
        if container.reason not in STARTING_REASONS:
            message = f": {container.message}" if container.message else ""
            waiting_reason = WaitingReason(f"container {container.name}  {container.reason}{message}")
            waiting_reason.reason, waiting_reason.container = container.reason, container.name
            reasons.append(waiting_reason)
    return reasons


def describe_unschedulable(pod: Mapping[str, Any]) -> str:
    """Explain why no node accepts the Pod; empty if it is scheduled or was not tried yet."""
    for condition in as_mappings(as_mapping(pod.get("status")).get("conditions")):
        if (
            condition.get("type") == "PodScheduled"
            and condition.get("status") == "False"
            and condition.get("reason") == UNSCHEDULABLE_REASON
        ):
            # k8s: drop the part about preemption
            message = str(condition.get("message") or "").partition(" preemption:")[0]
            return f"{UNSCHEDULABLE_REASON}: {message or 'no node accepts it'}"
    return ""


async def _find_owners(service: ApplicationService, pod: Manifest, managed: Set[ResourceKey]) -> list[Manifest] | None:
    """Return the owners of a Pod, starting at a managed object; unreadable ones are left out.

    None if no owner is managed, or if the Pod belongs to an old ReplicaSet.
    """
    namespace = str(pod["metadata"].get("namespace") or "")
    pod_key = ResourceKey(*POD, namespace, str(pod["metadata"]["name"]))
    if pod_key in managed:
        return [pod]
    pending: list[tuple[Manifest, list[Manifest]]] = [(pod, [])]
    for _ in range(MAX_OWNER_LEVELS):
        if not pending:
            return None
        manifest, owners = pending.pop()
        for reference in as_mappings(manifest["metadata"].get("ownerReferences")):
            group = split_api_version(str(reference.get("apiVersion") or ""))[0]
            key = ResourceKey(group, str(reference.get("kind")), namespace, str(reference.get("name")))
            owner = await _get_if_readable(service, key)
            if owner is not None and is_old_replica_set(manifest, owner):
                continue
            chain = [owner, *owners] if owner is not None else owners
            if key in managed:
                return chain
            if owner is not None:
                pending.append((owner, chain))
    return None


async def _get_if_readable(service: ApplicationService, key: ResourceKey) -> Manifest | None:
    try:
        return await service.cluster.get(key)
    except ClusterError:
        return None
