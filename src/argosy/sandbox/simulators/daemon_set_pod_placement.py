"""Computes the Pods of a DaemonSet: which Nodes need one, the Pod for each Node, the limits of a rolling update.

In: a DaemonSet, Nodes, Pods. Out: manifests and numbers. Never: writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators import node_selection
from argosy.sandbox.simulators.controller_revisions import REVISION_HASH_LABEL
from argosy.sandbox.simulators.deployment_rolling_update_counts import resolve_int_or_percent
from argosy.sandbox.simulators.node_and_storage_class_manifests import is_simulated_node
from argosy.sandbox.simulators.owner_references_and_marks import build_pod, hash_to_name_suffix, is_being_deleted
from argosy.sandbox.simulators.pod_counts import is_available

TEMPLATE_GENERATION_LABEL: Final = "pod-template-generation"
# k8s: daemon Pods tolerate Nodes that have problems or are cordoned
DAEMON_TOLERATIONS: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
REQUIRED_AFFINITY_FIELD: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class DaemonPodPlacement:
    """The Pods of a DaemonSet by Node; `stray_pods` are on Nodes where they do not belong."""

    target_nodes: Sequence[str]
    pods_by_node: Mapping[str, Sequence[Manifest]]
    stray_pods: Sequence[Manifest]


def compute_placement(
    daemon_set: Manifest, all_nodes: Iterable[Manifest], pods: Iterable[Manifest]
) -> DaemonPodPlacement:
    probe = {"metadata": {}, "spec": add_daemon_tolerations(daemon_set["spec"]["template"]["spec"])}
    simulated_nodes = (
        candidate for candidate in all_nodes if is_simulated_node(candidate) and not is_being_deleted(candidate)
    )
    target_nodes = sorted(
        str(candidate["metadata"]["name"])
        for candidate in simulated_nodes
        if node_selection.can_run_on(probe, candidate)
    )
    pods_by_node: dict[str, list[Manifest]] = {}
    for pod in pods:
        pods_by_node.setdefault(find_target_node(pod), []).append(pod)
    stray_pods = [
        pod for node_name, node_pods in pods_by_node.items() if node_name not in target_nodes for pod in node_pods
    ]
    return DaemonPodPlacement(target_nodes, pods_by_node, stray_pods)


def find_target_node(pod: Manifest) -> str:
    """Return the Node that the Pod runs on, or the one it was created for."""
    if name := pod["spec"].get("nodeName"):
        return str(name)
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(REQUIRED_AFFINITY_FIELD) or {}).get("nodeSelectorTerms") or ():
        for requirement in term.get("matchFields") or ():
            return str(next(iter(requirement.get("values") or ()), ""))
    return ""


def add_daemon_tolerations(pod_spec: Manifest) -> Manifest:
    """Return the Pod spec with the tolerations of daemon Pods added."""
    tolerations = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in DAEMON_TOLERATIONS]
    return {**pod_spec, "tolerations": [*(pod_spec.get("tolerations") or ()), *tolerations]}


def build_daemon_pod(daemon_set: Manifest, node_name: str, revision_hash: str, taken_names: Iterable[str]) -> Manifest:
    """Build the Pod for a Node.

    The name depends only on the Node and the revision, so that a Pod is never created twice.
    """
    metadata = daemon_set["metadata"]
    other_names = set(taken_names)
    suffixes = (
        hash_to_name_suffix(f"{metadata['uid']}/{node_name}/{revision_hash}/{attempt}", 5)
        for attempt in range(len(other_names) + 1)
    )
    name = next(
        candidate
        for candidate in (f"{metadata['name'][:57]}-{suffix}" for suffix in suffixes)
        if candidate not in other_names
    )
    labels = {REVISION_HASH_LABEL: revision_hash, TEMPLATE_GENERATION_LABEL: str(metadata.get("generation", 1))}
    pod = build_pod(daemon_set["spec"]["template"], daemon_set, name, labels)
    spec: dict[str, Any] = add_daemon_tolerations(pod["spec"])
    affinity = spec.get("affinity") or {}
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}]
    required = {REQUIRED_AFFINITY_FIELD: {"nodeSelectorTerms": terms}}
    spec["affinity"] = {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}
    return {**pod, "spec": spec}


def read_rolling_update_limits(daemon_set: Manifest, node_count: int) -> tuple[int, int]:
    """Return maxUnavailable and maxSurge as numbers of Pods."""
    rolling_update = (daemon_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    max_surge = resolve_int_or_percent(rolling_update.get("maxSurge", 0), node_count, round_up=True)
    max_unavailable = resolve_int_or_percent(rolling_update.get("maxUnavailable", 1), node_count, round_up=True)
    return (max_unavailable if max_surge or max_unavailable else 1), max_surge


def has_revision(pod: Manifest, revision_hash: str) -> bool:
    return bool((pod["metadata"].get("labels") or {}).get(REVISION_HASH_LABEL) == revision_hash)


def is_pod_available(pod: Manifest, daemon_set: Manifest, now: Any) -> bool:
    return not is_being_deleted(pod) and is_available(pod, float(daemon_set["spec"].get("minReadySeconds") or 0), now)
