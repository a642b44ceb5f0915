"""Validates tasks before they run: does the cluster serve their kinds, does the project permit them. Pure.

In: tasks, the kinds that the cluster serves. Out: the reason for each task that cannot run. Never: asks a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from argosy.gitops.sync.effective_apply_and_prune_options import OperationOptions
from argosy.gitops.sync.task_order import find_defined_kind
from argosy.gitops.sync.task_states import SyncTask, SyncTaskList
from argosy.kube.resource_key import GroupKind, ResourceKey, split_api_version

CheckPermission = Callable[[ResourceKey, bool], str]  # key and is_namespaced → why it is not permitted; "" if it is


class ServedKind(Protocol):
    @property
    def namespaced(self) -> bool: ...
    @property
    def version(self) -> str: ...
    @property
    def versions(self) -> Sequence[str]: ...


def find_invalid_tasks(
    tasks: Sequence[SyncTask],
    task_list: SyncTaskList,
    kinds: Mapping[GroupKind, ServedKind],
    operation_options: OperationOptions,
    check_permission: CheckPermission,
) -> list[tuple[SyncTask, str]]:
    defined_kinds = {defined for task in task_list.tasks if (defined := find_defined_kind(task.planned))}
    problems = []
    for task in tasks:
        kind = task.key.group_kind
        served_kind = kinds.get(kind)
        if served_kind is None or not _has_version(task, served_kind):
            if tuple(kind) in defined_kinds or operation_options.skips_missing_kind(task.planned):
                continue
            reason = _format_not_served(task)
        else:
            reason = check_permission(task.key, served_kind.namespaced)
        if reason:
            problems.append((task, reason))
    return problems


def _has_version(task: SyncTask, served: ServedKind) -> bool:
    if task.planned.desired is None:
        return True
    _, version = split_api_version(str(task.planned.desired.get("apiVersion") or ""))
    return version == served.version or version in served.versions


def _format_not_served(task: SyncTask) -> str:
    """argo: Argo CD's message, which names the kind and says what to install."""
    key = task.key
    _, version = split_api_version(str((task.planned.desired or task.live or {}).get("apiVersion") or ""))
    return (
        f'The Kubernetes API could not find version "{version}" of {key.group}/{key.kind} for requested resource '
        f'{key.namespace}/{key.name}. Make sure the "{key.kind}" CRD is installed on the destination cluster.'
    )
