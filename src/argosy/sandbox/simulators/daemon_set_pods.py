"""Computes the Pods of a DaemonSet: which Nodes need one, the Pod for each Node, the limits of a rolling update.

In: a DaemonSet, Nodes, Pods. Out: manifests and numbers. Never: writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators import nodes, scheduling
from argosy.sandbox.simulators.constants import is_dying, letters, pod_from
from argosy.sandbox.simulators.controller_revisions import REVISION
from argosy.sandbox.simulators.pod_counts import is_available
from argosy.sandbox.simulators.rollout import share

GENERATION: Final = "pod-template-generation"
# k8s: daemon Pods tolerate Nodes that have problems or are cordoned
BORNE: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Spread:
    """The Pods of a DaemonSet by Node; `stray_pods` are on Nodes where they do not belong."""

    wanted: Sequence[str]
    pods: Mapping[str, Sequence[Manifest]]
    stray: Sequence[Manifest]


def spread(live: Manifest, found: Iterable[Manifest], pods: Iterable[Manifest]) -> Spread:
    probe = {"metadata": {}, "spec": bearing(live["spec"]["template"]["spec"])}
    played = (each for each in found if nodes.is_played(each) and not is_dying(each))
    wanted = sorted(str(each["metadata"]["name"]) for each in played if scheduling.may_run(probe, each))
    by_node: dict[str, list[Manifest]] = {}
    for pod in pods:
        by_node.setdefault(node_of(pod), []).append(pod)
    stray = [pod for node, here in by_node.items() if node not in wanted for pod in here]
    return Spread(wanted, by_node, stray)


def node_of(pod: Manifest) -> str:
    """Return the Node that the Pod runs on, or the one it was created for."""
    if name := pod["spec"].get("nodeName"):
        return str(name)
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for each in term.get("matchFields") or ():
            return str(next(iter(each.get("values") or ()), ""))
    return ""


def bearing(spec: Manifest) -> Manifest:
    """Return the Pod spec with the tolerations of daemon Pods added."""
    tolerations = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in BORNE]
    return {**spec, "tolerations": [*(spec.get("tolerations") or ()), *tolerations]}


def pod_for(live: Manifest, node: str, mark: str, taken: Iterable[str]) -> Manifest:
    """Build the Pod for a Node.

    The name depends only on the Node and the revision, so that a Pod is never created twice.
    """
    metadata = live["metadata"]
    others = set(taken)
    marks = (letters(f"{metadata['uid']}/{node}/{mark}/{number}", 5) for number in range(len(others) + 1))
    name = next(each for each in (f"{metadata['name'][:57]}-{end}" for end in marks) if each not in others)
    labels = {REVISION: mark, GENERATION: str(metadata.get("generation", 1))}
    pod = pod_from(live["spec"]["template"], live, name, labels)
    spec: dict[str, Any] = bearing(pod["spec"])
    affinity = spec.get("affinity") or {}
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    required = {REQUIRED: {"nodeSelectorTerms": terms}}
    spec["affinity"] = {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}
    return {**pod, "spec": spec}


def bounds(live: Manifest, count: int) -> tuple[int, int]:
    """Return maxUnavailable and maxSurge as numbers of Pods."""
    rolling = (live["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    surge = share(rolling.get("maxSurge", 0), count, up=True)
    missing = share(rolling.get("maxUnavailable", 1), count, up=True)
    return (missing if surge or missing else 1), surge


def is_of(pod: Manifest, mark: str) -> bool:
    return bool((pod["metadata"].get("labels") or {}).get(REVISION) == mark)


def is_well(pod: Manifest, live: Manifest, now: Any) -> bool:
    return not is_dying(pod) and is_available(pod, float(live["spec"].get("minReadySeconds") or 0), now)
