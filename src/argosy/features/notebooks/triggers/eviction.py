"""Pods replaced one by one.

In: Pods of something that is restarted. Out: one eviction at a time, the next only when the Pod in its place is ready.
Never: deletes past a disruption budget; a Pod that was not there when it began.
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
    """By matchLabels and matchExpressions alike."""
    chosen = from_label_selector((target.get("spec") or {}).get("selector"))
    return await labelled(target, str(chosen), cluster)


async def evict(turn: Turn, target: Manifest, pods: Sequence[Manifest]) -> Acted:
    """The uids of those that must go are stored before the first goes, so that none goes twice."""
    namespace = target["metadata"]["namespace"]
    await permission.check(turn.job, Wish("create", "", "pods", namespace, subresource="eviction"), turn.cluster)
    uids = list(turn.record.get("pods") or ())
    if not uids:
        those = [pod["metadata"]["uid"] for pod in pods if not _is_leaving(pod)]
        if not those:
            return Acted("it has no Pods; the next one loads what is there now")
        return Acted(f"0 of {len(those)} Pods replaced", SOON, {"pods": those})
    old = [pod for pod in pods if pod["metadata"]["uid"] in uids and not _is_leaving(pod)]
    new = [pod for pod in pods if pod["metadata"]["uid"] not in uids and not _is_leaving(pod)]
    gone, ready = len(uids) - len(old), sum(map(is_ready, new))
    if gone > ready and (old or turn.entry.waits):
        why = next((_why(pod) for pod in new if not is_ready(pod)), "no new Pod is there yet")
        return Acted(f"{ready} of {len(uids)} Pods replaced; waiting: {why}", PACE)
    if not old:
        return Acted("its Pod was replaced" if len(uids) == 1 else f"{len(uids)} Pods were replaced, one by one")
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
        if error.code not in (404, 409):  # k8s: it is gone, or another has its name; 429 is a budget, and may pass
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
