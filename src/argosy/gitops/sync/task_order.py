"""Orders the tasks of a sync.

In: tasks. Out: the same tasks in order. Never: drops or repeats one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from argosy.gitops.application import Phase
from argosy.gitops.application.step_results import Task
from argosy.kube.names import ResourceKey

PHASES: Final = (Phase.PRE_SYNC, Phase.SYNC, Phase.POST_SYNC, Phase.SYNC_FAIL)
_PHASE_RANK: Final = {phase: rank for rank, phase in enumerate(PHASES)}
# argo: Argo CD's order of kinds; the group does not count, and all other kinds come last.
_KINDS: Final = [
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
_KIND_RANK: Final = {kind: rank for rank, kind in enumerate(_KINDS)}
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")


def in_order(tasks: Iterable[Task], destination: str = "") -> list[Task]:
    """Sort by phase, wave, kind and name; Namespaces before their contents, CRDs before their custom resources."""
    ordered = sorted(tasks, key=_place)
    return _definitions_first(_namespaces_first(ordered, destination))


def kind_rank(kind: str) -> int:
    return _KIND_RANK.get(kind, len(_KINDS))


def _place(task: Task) -> tuple[int, int, int, str, ResourceKey]:
    # argo: the name decides last; the rest of the key only makes the order stable.
    return _PHASE_RANK[task.phase], task.wave, kind_rank(task.key.kind), task.key.name, task.key


def _namespaces_first(tasks: list[Task], destination: str) -> list[Task]:
    """argo: an object without a namespace counts as one in the destination namespace, even if cluster-scoped."""
    first: dict[str, int] = {}
    for place, task in enumerate(tasks):
        if not task.is_prune and task.key.group_kind != ("", "Namespace"):
            first.setdefault(task.key.namespace or destination, place)
    needed = {
        place: first[task.key.name]
        for place, task in enumerate(tasks)
        if task.key.group_kind == ("", "Namespace") and not task.is_prune and task.key.name in first
    }
    return _moved(tasks, needed)


def _definitions_first(tasks: list[Task]) -> list[Task]:
    first: dict[tuple[str, str], int] = {}
    for place, task in enumerate(tasks):
        if not task.is_prune:
            first.setdefault((task.key.group, task.key.kind), place)
    needed = {}
    for place, task in enumerate(tasks):
        defined = defined_by(task)
        if defined in first:
            needed[place] = first[defined]
    return _moved(tasks, needed)


def defined_by(task: Task) -> tuple[str, str] | None:
    if task.key.group_kind != _DEFINITION or task.desired is None:
        return None
    spec = task.desired.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict):
        return None
    return str(spec.get("group") or ""), str(names.get("kind") or "")


def _moved(tasks: Sequence[Task], needed: dict[int, int]) -> list[Task]:
    """Move each late task of `needed` before the task that needs it, into that task's step."""
    late = {place: before for place, before in needed.items() if before < place}
    if not late:
        return list(tasks)
    ordered: list[Task] = []
    for place, task in enumerate(tasks):
        arriving = sorted(moved for moved, before in late.items() if before == place)
        ordered += [replace(tasks[moved], phase=task.phase, wave=task.wave) for moved in arriving]
        if place not in late:
            ordered.append(task)
    return ordered
