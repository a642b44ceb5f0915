"""Which tasks a sync has, and in which order. Pure.

In: a comparison, a request, and when it began. Out: tasks. Never: looks at what was done so far: the same comparison
and request give the same tasks, so that a sync can be taken up again at any point.
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
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.-]")  # k8s: of a chart's version, such as "+"


@dataclass(frozen=True, slots=True)
class Occasion:
    """One operation, as its tasks must know it: their names and marks come from it."""

    app: Application
    revision: str
    started: str  # RFC 3339
    attempt: int = 0  # how often it was tried again: each attempt runs its own hooks

    def mark(self, phase: Phase) -> str:
        """What tells the hooks of this operation's phase from those of any other."""
        words = f"{self.app.uid or self.app.key}@{self.started}" + (f"#{self.attempt}" if self.attempt else "")
        return f"{hashlib.sha256(words.encode()).hexdigest()[:16]}-{phase}"


def plan(
    comparison: Comparison,
    request: SyncRequest,
    occasion: Occasion,
    options: SyncOptions,
    live: Mapping[ResourceKey, Manifest],
) -> list[Task]:
    """`live` is for hooks and namespaces, which are in no pair."""
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
    """argo: by the letter; an empty namespace stands for any."""
    return any(
        each.group_kind == key.group_kind and each.name == key.name and each.namespace in ("", key.namespace)
        for each in chosen
    )


def hook_tasks(hooks: Iterable[Manifest], occasion: Occasion, live: Mapping[ResourceKey, Manifest]) -> list[Task]:
    """A task for each phase that a hook names."""
    hooks = list(hooks)
    found = []
    for phase in PHASES:
        for made in prepare_hooks(hooks, phase, occasion):
            key = key_of(made)
            found.append(Task(key, phase, wave(made), made, live.get(key), is_hook=True))
    return found


def prepare_hooks(hooks: Iterable[Manifest], phase: Phase, occasion: Occasion) -> list[Manifest]:
    """Return the hooks of a phase as they are created: named, marked, and with the finalizer of hooks.

    The same hooks and operation give the same names, so that no hook is created twice after a crash. In Argo CD hooks
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
    """Add a generated name to the tracking ID, which ends before the name until the name is known."""
    annotations = metadata.get("annotations") or {}
    tracking_id = annotations.get(names.TRACKING_ID)
    if isinstance(tracking_id, str) and tracking_id.endswith("/"):
        metadata["annotations"] = {**annotations, names.TRACKING_ID: tracking_id + metadata["name"]}


def _generated(lead: str, phase: Phase, occasion: Occasion) -> str:
    """argo: from the revision's first seven digits, the phase and the second in which the operation began."""
    revision = occasion.revision[:7] if len(occasion.revision) >= 8 else occasion.revision
    revision = _NOT_IN_NAMES.sub("-", revision.lower()).rstrip(".")
    second = int(datetime.fromisoformat(occasion.started).timestamp()) if occasion.started else 0
    return f"{lead}{revision}-{phase}-{second}".lower()


def _mirrored(tasks: list[Task]) -> list[Task]:
    """argo: what was made last is pruned first, in the same waves: the first changes places with the last."""
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
    """All that is desired under a name, chosen or not."""
    desired = [*(pair.desired for pair in comparison.pairs if pair.desired is not None), *comparison.hooks]
    return [each for each in desired if each["metadata"].get("name")]


def _namespace_task(
    tasks: Sequence[Task], app: Application, options: SyncOptions, live: Mapping[ResourceKey, Manifest]
) -> list[Task]:
    """argo: before everything else, where it is not there yet or where its metadata is managed."""
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
