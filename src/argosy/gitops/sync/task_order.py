"""Orders the tasks of a sync.

In: tasks. Out: the same tasks in order. Never: drops or repeats one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from argosy.gitops.application import SyncPhase
from argosy.gitops.application.step_results import PlannedTask
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CRD

PHASES: Final = (SyncPhase.PRE_SYNC, SyncPhase.SYNC, SyncPhase.POST_SYNC, SyncPhase.SYNC_FAIL)
_PHASE_RANK: Final = {phase: rank for rank, phase in enumerate(PHASES)}
# argo: Argo CD's order of kinds; the group does not count, and all other kinds come last.
_KIND_ORDER: Final = [
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
]
_KIND_RANK: Final = {kind: rank for rank, kind in enumerate(_KIND_ORDER)}


def sort_tasks(tasks: Iterable[PlannedTask], destination: str = "") -> list[PlannedTask]:
    """Sort by phase, wave, kind and name; Namespaces before their contents, CRDs before their custom resources."""
    ordered = sorted(tasks, key=_sort_key)
    return _move_crds_first(_move_namespaces_first(ordered, destination))


def kind_rank(kind: str) -> int:
    return _KIND_RANK.get(kind, len(_KIND_ORDER))


def _sort_key(task: PlannedTask) -> tuple[int, int, int, str, ResourceKey]:
    # argo: the name decides last; the rest of the key only makes the order stable.
    return _PHASE_RANK[task.phase], task.wave, kind_rank(task.key.kind), task.key.name, task.key


def _move_namespaces_first(tasks: list[PlannedTask], destination: str) -> list[PlannedTask]:
    """argo: an object without a namespace counts as one in the destination namespace, even if cluster-scoped."""
    first_use: dict[str, int] = {}
    for index, task in enumerate(tasks):
        if not task.is_prune and task.key.group_kind != ("", "Namespace"):
            first_use.setdefault(task.key.namespace or destination, index)
    needed = {
        index: first_use[task.key.name]
        for index, task in enumerate(tasks)
        if task.key.group_kind == ("", "Namespace") and not task.is_prune and task.key.name in first_use
    }
    return _move_before(tasks, needed)


def _move_crds_first(tasks: list[PlannedTask]) -> list[PlannedTask]:
    first_use: dict[tuple[str, str], int] = {}
    for index, task in enumerate(tasks):
        if not task.is_prune:
            first_use.setdefault((task.key.group, task.key.kind), index)
    needed = {}
    for index, task in enumerate(tasks):
        defined = find_defined_kind(task)
        if defined in first_use:
            needed[index] = first_use[defined]
    return _move_before(tasks, needed)


def find_defined_kind(task: PlannedTask) -> tuple[str, str] | None:
    if task.key.group_kind != CRD or task.desired is None:
        return None
    spec = task.desired.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict):
        return None
    return str(spec.get("group") or ""), str(names.get("kind") or "")


def _move_before(tasks: Sequence[PlannedTask], needed: dict[int, int]) -> list[PlannedTask]:
    """Move each late task of `needed` before the task that needs it, into that task's step."""
    late = {index: target for index, target in needed.items() if target < index}
    if not late:
        return list(tasks)
    ordered: list[PlannedTask] = []
    for index, task in enumerate(tasks):
        moved_here = sorted(late_index for late_index, target in late.items() if target == index)
        ordered += [replace(tasks[late_index], phase=task.phase, wave=task.wave) for late_index in moved_here]
        if index not in late:
            ordered.append(task)
    return ordered
