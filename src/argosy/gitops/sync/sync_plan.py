"""Plans the tasks of a sync and their order. Pure.

In: a comparison, a request, and the start of the operation. Out: tasks. Never: looks at earlier results: the same
comparison and request give the same tasks, so that a sync can resume at any point.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from argosy import annotations as names
from argosy.gitops.application import Application, SyncPhase, SyncRequest
from argosy.gitops.application.step_results import AppComparison, PlannedTask
from argosy.gitops.application.sync_annotations import has_option, list_hook_phases, read_wave
from argosy.gitops.sync.sync_options import SyncOptions
from argosy.gitops.sync.task_order import PHASES, sort_tasks
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NAMESPACE

# k8s: characters of a chart version that names may not contain, such as "+"
_INVALID_NAME_CHARACTERS: Final = re.compile(r"[^a-z0-9.-]")


@dataclass(frozen=True, slots=True)
class OperationContext:
    """The operation that tasks belong to. It determines the names and marks of hooks."""

    app: Application
    revision: str
    started: str  # RFC 3339
    attempt: int = 0  # number of retries; each attempt runs its own hooks

    def build_hook_mark(self, phase: SyncPhase) -> str:
        """Return the mark of the hooks of this operation and phase."""
        identity = f"{self.app.uid or self.app.key}@{self.started}" + (f"#{self.attempt}" if self.attempt else "")
        return f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}-{phase}"


def plan_tasks(
    comparison: AppComparison,
    request: SyncRequest,
    operation: OperationContext,
    options: SyncOptions,
    live: Mapping[ResourceKey, Manifest],
) -> list[PlannedTask]:
    """Build the ordered tasks. `live` holds hooks and namespaces, which are in no pair."""
    tasks = [
        PlannedTask(
            pair.key,
            SyncPhase.SYNC,
            read_wave(pair.desired or pair.live or {}),
            pair.desired,
            pair.live,
            differs=pair.differs,
        )
        for pair in comparison.pairs
    ]
    if request.resources:
        tasks = [task for task in tasks if is_selected(task.key, request.resources)]
    elif request.runs_hooks:
        tasks += plan_hook_tasks(comparison.hooks, operation, live)
    tasks = _move_prunes_last(_reverse_prune_waves(tasks), options)
    tasks = [_name_namespace_of_result(task, operation.app) for task in tasks]
    if not any(key_of(manifest) == _namespace_key(operation.app) for manifest in _list_named_manifests(comparison)):
        tasks += _plan_namespace_task(tasks, operation.app, options, live)
    return sort_tasks(tasks, operation.app.destination.namespace)


def is_selected(key: ResourceKey, selected: Sequence[ResourceKey]) -> bool:
    """argo: exact match; an empty namespace matches any."""
    return any(
        selected_key.group_kind == key.group_kind
        and selected_key.name == key.name
        and selected_key.namespace in ("", key.namespace)
        for selected_key in selected
    )


def plan_hook_tasks(
    hooks: Iterable[Manifest], operation: OperationContext, live: Mapping[ResourceKey, Manifest]
) -> list[PlannedTask]:
    """Build a task for each phase of each hook."""
    hooks = list(hooks)
    tasks = []
    for phase in PHASES:
        for hook in prepare_hooks(hooks, phase, operation):
            key = key_of(hook)
            tasks.append(PlannedTask(key, phase, read_wave(hook), hook, live.get(key), is_hook=True))
    return tasks


def prepare_hooks(hooks: Iterable[Manifest], phase: SyncPhase, operation: OperationContext) -> list[Manifest]:
    """Return the hooks of a phase as they will be created: with name, mark and hook finalizer.

    The same hooks and operation give the same names, so that no hook is created twice after a crash. In Argo CD, hooks
    with the same `generateName` and phase get the same name and overwrite each other; here later ones get a number.
    """
    prepared: list[Manifest] = []
    generated_counts: Counter[ResourceKey] = Counter()
    for hook in hooks:
        if phase not in list_hook_phases(hook):
            continue
        prepared_hook = copy.deepcopy(hook)
        metadata = prepared_hook["metadata"]
        if not metadata.get("name"):
            metadata["name"] = _generate_hook_name(str(metadata.get("generateName") or ""), phase, operation)
            key = key_of(prepared_hook)
            generated_counts[key] += 1
            if generated_counts[key] > 1:
                metadata["name"] += f"-{generated_counts[key]}"
            _complete_tracking_id(metadata)
        metadata["annotations"] = {
            **(metadata.get("annotations") or {}),
            names.OPERATION: operation.build_hook_mark(phase),
        }
        metadata["finalizers"] = list(dict.fromkeys([*(metadata.get("finalizers") or ()), names.HOOK_FINALIZER]))
        prepared.append(prepared_hook)
    return prepared


def _complete_tracking_id(metadata: dict[str, Any]) -> None:
    """Append a generated name to the tracking ID, which ends with "/" until the name is known."""
    annotations = metadata.get("annotations") or {}
    tracking_id = annotations.get(names.TRACKING_ID)
    if isinstance(tracking_id, str) and tracking_id.endswith("/"):
        metadata["annotations"] = {**annotations, names.TRACKING_ID: tracking_id + metadata["name"]}


def _generate_hook_name(prefix: str, phase: SyncPhase, operation: OperationContext) -> str:
    """argo: built from the first seven digits of the revision, the phase, and the second in which the operation
    started. k8s: without prefix and revision, the name must not begin with "-".
    """
    revision = operation.revision[:7] if len(operation.revision) >= 8 else operation.revision
    revision = _INVALID_NAME_CHARACTERS.sub("-", revision.lower()).rstrip(".")
    second = int(datetime.fromisoformat(operation.started).timestamp()) if operation.started else 0
    return f"{prefix}{revision}-{phase}-{second}".lower().removeprefix("-")


def _reverse_prune_waves(tasks: list[PlannedTask]) -> list[PlannedTask]:
    """argo: prunes run in reverse order of waves: the first wave swaps with the last."""
    waves = sorted({task.wave for task in tasks if task.is_prune})
    mirrored_wave = dict(zip(waves, reversed(waves)))
    return [replace(task, wave=mirrored_wave[task.wave]) if task.is_prune else task for task in tasks]


def _move_prunes_last(tasks: list[PlannedTask], options: SyncOptions) -> list[PlannedTask]:
    def is_late(task: PlannedTask) -> bool:
        return task.is_prune and (options.is_on("PruneLast") or has_option(task.live, "PruneLast=true"))

    last = max([0, *(task.wave for task in tasks if task.phase is SyncPhase.SYNC)]) + 1
    return [replace(task, wave=last) if is_late(task) else task for task in tasks]


def _name_namespace_of_result(task: PlannedTask, app: Application) -> PlannedTask:
    """argo: an object from Git has the namespace of the destination in its result, even if it is cluster-scoped."""
    if task.is_prune or task.key.namespace:
        return task
    return replace(task, namespace_in_result=app.destination.namespace)


def _namespace_key(app: Application) -> ResourceKey:
    return ResourceKey(*NAMESPACE, "", app.destination.namespace)


def _list_named_manifests(comparison: AppComparison) -> list[Manifest]:
    """Return all desired manifests that have a name, selected or not."""
    desired = [*(pair.desired for pair in comparison.pairs if pair.desired is not None), *comparison.hooks]
    return [manifest for manifest in desired if manifest["metadata"].get("name")]


def _plan_namespace_task(
    tasks: Sequence[PlannedTask], app: Application, options: SyncOptions, live: Mapping[ResourceKey, Manifest]
) -> list[PlannedTask]:
    """argo: create the namespace first if it does not exist, or update it if its metadata is managed."""
    name, key = app.destination.namespace, _namespace_key(app)
    if not name or not options.is_on("CreateNamespace") or any(task.key == key for task in tasks):
        return []
    live_namespace = live.get(key)
    if live_namespace is not None and app.policy.namespace_metadata is None:
        return []
    return [PlannedTask(key, SyncPhase.PRE_SYNC, 0, build_namespace(app), live_namespace)]


def build_namespace(app: Application) -> Manifest:
    """Return the destination's namespace as Argo CD creates it, with the metadata that the Application manages."""
    desired: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": app.destination.namespace}}
    metadata = app.policy.namespace_metadata
    if metadata is not None:
        managed_metadata = {"labels": dict(metadata.labels), "annotations": dict(metadata.annotations)}
        managed_metadata["annotations"][names.SYNC_OPTIONS] = "ServerSideApply=true"
        desired["metadata"] |= {part: texts for part, texts in managed_metadata.items() if texts}
    return desired
