"""Validates tasks before they run: does the cluster serve their kinds, does the project permit them. Pure.

In: tasks, the kinds that the cluster serves. Out: the reason for each task that cannot run. Never: asks a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

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


class InvalidTask(NamedTuple):
    task: SyncTask
    message: str  # of the task
    cause: str  # in the message of the operation


def find_invalid_tasks(
    tasks: Sequence[SyncTask],
    task_list: SyncTaskList,
    kinds: Mapping[GroupKind, ServedKind],
    operation_options: OperationOptions,
    check_permission: CheckPermission,
) -> list[InvalidTask]:
    defined_kinds = {defined for task in task_list.tasks if (defined := find_defined_kind(task.planned))}
    invalid_tasks = []
    for task in tasks:
        kind = task.key.group_kind
        served_kind = kinds.get(kind)
        if served_kind is None or not _has_version(task, served_kind):
            if tuple(kind) not in defined_kinds and not operation_options.skips_missing_kind(task.planned):
                invalid_tasks.append(_explain_unserved(task, kinds))
        elif reason := check_permission(task.key, served_kind.namespaced):
            invalid_tasks.append(InvalidTask(task, reason, reason))
    return invalid_tasks


def _has_version(task: SyncTask, served: ServedKind) -> bool:
    if task.planned.desired is None:
        return True
    _, version = split_api_version(str(task.planned.desired.get("apiVersion") or ""))
    return version == served.version or version in served.versions


def _explain_unserved(task: SyncTask, kinds: Mapping[GroupKind, ServedKind]) -> InvalidTask:
    """argo: one message if only the kind is missing, another one if nothing of its group and version is served."""
    key = task.key
    api_version = str((task.planned.desired or task.live or {}).get("apiVersion") or "")
    _, version = split_api_version(api_version)
    group_kinds = [served for kind, served in kinds.items() if kind.group == key.group]
    if any(version == served.version or version in served.versions for served in group_kinds):
        message = f'{key.kind}{f".{key.group}" if key.group else ""} "" not found'
        return InvalidTask(task, message, message)
    cause = (
        f"failed to discover server resources for group version {api_version}: "
        "the server could not find the requested resource"
    )
    requested = f"{key.group}/{key.kind} for requested resource {key.namespace}/{key.name}."
    installed = key.group_kind if key.group_kind in kinds else _find_kind_of_other_group(key.kind, kinds)
    if installed is None:
        advice = f'Make sure the "{key.kind}" CRD is installed on the destination cluster.'
        return InvalidTask(task, f"The Kubernetes API could not find {requested} {advice}", cause)
    served_version = f'Version "{kinds[installed].version}" of {installed.group}/{installed.kind}'
    advice = f"{served_version} is installed on the destination cluster."
    message = f'The Kubernetes API could not find version "{version}" of {requested} {advice}'
    return InvalidTask(task, message, cause)


def _find_kind_of_other_group(name: str, kinds: Mapping[GroupKind, ServedKind]) -> GroupKind | None:
    return min((kind for kind in kinds if kind.kind == name), default=None)
