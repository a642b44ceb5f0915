"""Replaces Pods one by one by eviction.

In: the Pods of a restarted object. Out: one eviction at a time; the next one when the replacement is ready. Never:
violates a PodDisruptionBudget; evicts a Pod that was created after the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.errors import ClusterError
from argosy.features.notebooks.triggers import permission
from argosy.features.notebooks.triggers.permission import Wish
from argosy.features.notebooks.triggers.turns import PACE, SOON, Acted, Turn
from argosy.kube.client import Cluster
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema.selectors import from_label_selector

POD: Final = GroupKind("", "Pod")
OVER: Final = ("Succeeded", "Failed")


async def labelled(target: Manifest, labels: str, cluster: Cluster) -> list[Manifest]:
    namespace = target["metadata"]["namespace"]
    found = (await cluster.list(POD, namespace=namespace, labels=labels)).items
    return [pod for pod in found if (pod.get("status") or {}).get("phase") not in OVER]


async def owned(target: Manifest, cluster: Cluster) -> list[Manifest]:
    uid = target["metadata"]["uid"]
    return [
        pod
        for pod in await labelled(target, "", cluster)
        if any(each.get("uid") == uid for each in pod["metadata"].get("ownerReferences") or ())
    ]


async def selected(target: Manifest, cluster: Cluster) -> list[Manifest]:
    """By matchLabels and matchExpressions."""
    chosen = from_label_selector((target.get("spec") or {}).get("selector"))
    return await labelled(target, str(chosen), cluster)


async def evict(turn: Turn, target: Manifest, pods: Sequence[Manifest]) -> Acted:
    """Store the uids of the Pods to replace before the first eviction, so that no Pod is evicted twice."""
    namespace = target["metadata"]["namespace"]
    await permission.check(turn.job, Wish("create", "", "pods", namespace, subresource="eviction"), turn.cluster)
    uids = list(turn.record.get("pods") or ())
    if not uids:
        those = [pod["metadata"]["uid"] for pod in pods if not _is_leaving(pod)]
        if not those:
            return Acted("no Pods to replace; the next Pod loads the new model")
        return Acted(f"0 of {len(those)} Pods replaced", SOON, {"pods": those})
    old = [pod for pod in pods if pod["metadata"]["uid"] in uids and not _is_leaving(pod)]
    new = [pod for pod in pods if pod["metadata"]["uid"] not in uids and not _is_leaving(pod)]
    gone, ready = len(uids) - len(old), sum(map(is_ready, new))
    if gone > ready and (old or turn.entry.waits):
        why = next((_why(pod) for pod in new if not is_ready(pod)), "no new Pod yet")
        return Acted(f"{ready} of {len(uids)} Pods replaced; waiting: {why}", PACE)
    if not old:
        return Acted("1 Pod was replaced" if len(uids) == 1 else f"{len(uids)} Pods were replaced, one by one")
    await _evict(min(old, key=is_ready), turn.cluster)
    return Acted(f"{gone} of {len(uids)} Pods replaced", SOON)


async def _evict(pod: Manifest, cluster: Cluster) -> None:
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


def is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _is_leaving(pod: Manifest) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _why(pod: Manifest) -> str:
    status = pod.get("status") or {}
    for each in status.get("containerStatuses") or ():
        waiting = (each.get("state") or {}).get("waiting") or {}
        if waiting.get("reason"):
            return f"{pod['metadata']['name']}: {waiting['reason']}"
    return f"{pod['metadata']['name']} is {status.get('phase') or 'Pending'}"
