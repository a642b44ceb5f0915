"""Replaces Pods one by one by eviction.

In: the Pods of a restarted object. Out: one eviction at a time; the next one when the replacement is ready. Never:
violates a PodDisruptionBudget; evicts a Pod that was created after the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.errors import ClusterError
from argosy.features.notebooks.on_success_triggers import service_account_permission_check
from argosy.features.notebooks.on_success_triggers.execution_context import (
    POLL_INTERVAL_SECONDS,
    SHORT_DELAY_SECONDS,
    TriggerExecution,
    TriggerStep,
)
from argosy.features.notebooks.on_success_triggers.service_account_permission_check import ResourceAccess
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema.selectors import label_selector_from_wire
from argosy.kube.well_known_kinds import POD

TERMINAL_POD_PHASES: Final = ("Succeeded", "Failed")


async def list_pods_by_label(target: Manifest, labels: str, cluster: Cluster) -> list[Manifest]:
    namespace = target["metadata"]["namespace"]
    pods = (await cluster.list(POD, namespace=namespace, labels=labels)).items
    return [pod for pod in pods if (pod.get("status") or {}).get("phase") not in TERMINAL_POD_PHASES]


async def list_owned_pods(target: Manifest, cluster: Cluster) -> list[Manifest]:
    uid = target["metadata"]["uid"]
    return [
        pod
        for pod in await list_pods_by_label(target, "", cluster)
        if any(reference.get("uid") == uid for reference in pod["metadata"].get("ownerReferences") or ())
    ]


async def list_selected_pods(target: Manifest, cluster: Cluster) -> list[Manifest]:
    """By matchLabels and matchExpressions."""
    selector = label_selector_from_wire((target.get("spec") or {}).get("selector"))
    return await list_pods_by_label(target, str(selector), cluster)


async def replace_pods(execution: TriggerExecution, target: Manifest, pods: Sequence[Manifest]) -> TriggerStep:
    """Store the uids of the Pods to replace before the first eviction, so that no Pod is evicted twice."""
    namespace = target["metadata"]["namespace"]
    await service_account_permission_check.check_permission(
        execution.job, ResourceAccess("create", "", "pods", namespace, subresource="eviction"), execution.cluster
    )
    uids = list(execution.record.get("pods") or ())
    if not uids:
        current_uids = [pod["metadata"]["uid"] for pod in pods if not _is_terminating(pod)]
        if not current_uids:
            return TriggerStep("no Pods to replace; the next Pod loads the new model")
        return TriggerStep(f"0 of {len(current_uids)} Pods replaced", SHORT_DELAY_SECONDS, {"pods": current_uids})
    old_pods = [pod for pod in pods if pod["metadata"]["uid"] in uids and not _is_terminating(pod)]
    new_pods = [pod for pod in pods if pod["metadata"]["uid"] not in uids and not _is_terminating(pod)]
    replaced_count, ready_count = len(uids) - len(old_pods), sum(map(is_pod_ready, new_pods))
    if replaced_count > ready_count and (old_pods or execution.entry.waits):
        reason = next((_describe_pod(pod) for pod in new_pods if not is_pod_ready(pod)), "no new Pod yet")
        return TriggerStep(f"{ready_count} of {len(uids)} Pods replaced; waiting: {reason}", POLL_INTERVAL_SECONDS)
    if not old_pods:
        return TriggerStep("1 Pod was replaced" if len(uids) == 1 else f"{len(uids)} Pods were replaced, one by one")
    await _evict_pod(min(old_pods, key=is_pod_ready), execution.cluster)
    return TriggerStep(f"{replaced_count} of {len(uids)} Pods replaced", SHORT_DELAY_SECONDS)


async def _evict_pod(pod: Manifest, cluster: Cluster) -> None:
    key, uid = key_of(pod), pod["metadata"]["uid"]
    eviction = {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": key.name, "namespace": key.namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }  # fmt: skip
    try:
        await cluster.create(eviction, subresource_of=key)
    except ClusterError as error:
        if error.code not in (404, 409):  # k8s: deleted or replaced; 429 is a PodDisruptionBudget and is retried
            raise


def is_pod_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def _is_terminating(pod: Manifest) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _describe_pod(pod: Manifest) -> str:
    status = pod.get("status") or {}
    for container_status in status.get("containerStatuses") or ():
        waiting = (container_status.get("state") or {}).get("waiting") or {}
        if waiting.get("reason"):
            return f"{pod['metadata']['name']}: {waiting['reason']}"
    return f"{pod['metadata']['name']} is {status.get('phase') or 'Pending'}"
