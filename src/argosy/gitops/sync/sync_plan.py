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
from argosy.gitops.application import Application, Phase, SyncRequest
from argosy.gitops.application.hooks import has_option, phases, wave
from argosy.gitops.application.step_results import Comparison, Task
from argosy.gitops.sync.options import SyncOptions
from argosy.gitops.sync.task_order import PHASES, in_order
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

NAMESPACE: Final = ("", "Namespace")
# k8s: characters of a chart version that names may not contain, such as "+"
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.-]")


@dataclass(frozen=True, slots=True)
class Occasion:
    """The operation that tasks belong to. It determines the names and marks of hooks."""

    app: Application
    revision: str
    started: str  # RFC 3339
    attempt: int = 0  # number of retries; each attempt runs its own hooks

    def mark(self, phase: Phase) -> str:
        """Return the mark of the hooks of this operation and phase."""
        words = f"{self.app.uid or self.app.key}@{self.started}" + (f"#{self.attempt}" if self.attempt else "")
        return f"{hashlib.sha256(words.encode()).hexdigest()[:16]}-{phase}"


def plan(
    comparison: Comparison,
    request: SyncRequest,
    occasion: Occasion,
    options: SyncOptions,
    live: Mapping[ResourceKey, Manifest],
) -> list[Task]:
    """Build the ordered tasks. `live` holds hooks and namespaces, which are in no pair."""
    tasks = [
        Task(pair.key, Phase.SYNC, wave(pair.desired or pair.live or {}), pair.desired, pair.live, differs=pair.differs)
        for pair in comparison.pairs
    ]
    if request.resources:
        tasks = [task for task in tasks if is_chosen(task.key, request.resources)]
    elif request.runs_hooks:
        tasks += hook_tasks(comparison.hooks, occasion, live)
    tasks = _prunes_last(_mirrored(tasks), options)
    if not any(key_of(each) == _space(occasion.app) for each in _named(comparison)):
        tasks += _namespace_task(tasks, occasion.app, options, live)
    return in_order(tasks, occasion.app.destination.namespace)


def is_chosen(key: ResourceKey, chosen: Sequence[ResourceKey]) -> bool:
    """argo: exact match; an empty namespace matches any."""
    return any(
        each.group_kind == key.group_kind and each.name == key.name and each.namespace in ("", key.namespace)
        for each in chosen
    )


def hook_tasks(hooks: Iterable[Manifest], occasion: Occasion, live: Mapping[ResourceKey, Manifest]) -> list[Task]:
    """Build a task for each phase of each hook."""
    hooks = list(hooks)
    found = []
    for phase in PHASES:
        for made in prepare_hooks(hooks, phase, occasion):
            key = key_of(made)
            found.append(Task(key, phase, wave(made), made, live.get(key), is_hook=True))
    return found


def prepare_hooks(hooks: Iterable[Manifest], phase: Phase, occasion: Occasion) -> list[Manifest]:
    """Return the hooks of a phase as they will be created: with name, mark and hook finalizer.

    The same hooks and operation give the same names, so that no hook is created twice after a crash. In Argo CD, hooks
    with the same `generateName` and phase get the same name and overwrite each other; here later ones get a number.
    """
    prepared: list[Manifest] = []
    generated: Counter[ResourceKey] = Counter()
    for hook in hooks:
        if phase not in phases(hook):
            continue
        made = copy.deepcopy(hook)
        metadata = made["metadata"]
        if not metadata.get("name"):
            metadata["name"] = _generated(str(metadata.pop("generateName", None) or ""), phase, occasion)
            key = key_of(made)
            generated[key] += 1
            if generated[key] > 1:
                metadata["name"] += f"-{generated[key]}"
            _complete_tracking(metadata)
        metadata["annotations"] = {**(metadata.get("annotations") or {}), names.OPERATION: occasion.mark(phase)}
        metadata["finalizers"] = list(dict.fromkeys([*(metadata.get("finalizers") or ()), names.HOOK_FINALIZER]))
        prepared.append(made)
    return prepared


def _complete_tracking(metadata: dict[str, Any]) -> None:
    """Append a generated name to the tracking ID, which ends with "/" until the name is known."""
    annotations = metadata.get("annotations") or {}
    tracking_id = annotations.get(names.TRACKING_ID)
    if isinstance(tracking_id, str) and tracking_id.endswith("/"):
        metadata["annotations"] = {**annotations, names.TRACKING_ID: tracking_id + metadata["name"]}


def _generated(lead: str, phase: Phase, occasion: Occasion) -> str:
    """argo: built from the first seven digits of the revision, the phase, and the second in which the operation
    started.
    """
    revision = occasion.revision[:7] if len(occasion.revision) >= 8 else occasion.revision
    revision = _NOT_IN_NAMES.sub("-", revision.lower()).rstrip(".")
    second = int(datetime.fromisoformat(occasion.started).timestamp()) if occasion.started else 0
    return f"{lead}{revision}-{phase}-{second}".lower()


def _mirrored(tasks: list[Task]) -> list[Task]:
    """argo: prunes run in reverse order of waves: the first wave swaps with the last."""
    waves = sorted({task.wave for task in tasks if task.is_prune})
    other = dict(zip(waves, reversed(waves)))
    return [replace(task, wave=other[task.wave]) if task.is_prune else task for task in tasks]


def _prunes_last(tasks: list[Task], options: SyncOptions) -> list[Task]:
    def is_late(task: Task) -> bool:
        return task.is_prune and (options.is_on("PruneLast") or has_option(task.live, "PruneLast=true"))

    last = max([0, *(task.wave for task in tasks if task.phase is Phase.SYNC)]) + 1
    return [replace(task, wave=last) if is_late(task) else task for task in tasks]


def _space(app: Application) -> ResourceKey:
    return ResourceKey(*NAMESPACE, "", app.destination.namespace)


def _named(comparison: Comparison) -> list[Manifest]:
    """Return all desired manifests that have a name, selected or not."""
    desired = [*(pair.desired for pair in comparison.pairs if pair.desired is not None), *comparison.hooks]
    return [each for each in desired if each["metadata"].get("name")]


def _namespace_task(
    tasks: Sequence[Task], app: Application, options: SyncOptions, live: Mapping[ResourceKey, Manifest]
) -> list[Task]:
    """argo: create the namespace first if it does not exist, or update it if its metadata is managed."""
    name, key = app.destination.namespace, _space(app)
    if not name or not options.is_on("CreateNamespace") or any(task.key == key for task in tasks):
        return []
    metadata = app.policy.namespace_metadata
    found = live.get(key)
    if found is not None and metadata is None:
        return []
    desired: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    if metadata is not None:
        asked = {"labels": dict(metadata.labels), "annotations": dict(metadata.annotations)}
        asked["annotations"][names.SYNC_OPTIONS] = "ServerSideApply=true"
        desired["metadata"] |= {part: texts for part, texts in asked.items() if texts}
    return [Task(key, Phase.PRE_SYNC, 0, desired, found)]
