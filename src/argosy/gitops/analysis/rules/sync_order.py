"""Rules about the order of a sync: waves, hooks, and Jobs that wait or are deleted.

In: a repository. Out: violations. Never: considers an optional dependency.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy import annotations as names
from argosy.gitops.analysis.fix_edit_builders import set_annotation
from argosy.gitops.analysis.pod_specs import (
    WAVE_BLOCKING_KINDS,
    PodDependency,
    join_commands,
    list_containers,
    list_dependencies,
)
from argosy.gitops.analysis.repository_view import ManifestWithLocations, RenderedSource, RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import Severity, Violation
from argosy.gitops.application import sync_annotations
from argosy.gitops.application.operations import SyncPhase
from argosy.gitops.application.sync_annotations import DeletePolicy
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import JOB

PHASES: Final = (SyncPhase.PRE_SYNC, SyncPhase.SYNC, SyncPhase.POST_SYNC)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_HOOK_TYPES: Final = (*SyncPhase, "Skip")
_WAIT_LOOP: Final = re.compile(r"^\s*(?:until\b|while\s+(?:true|:|!|\[))", re.MULTILINE)
_LOOP_LIMIT: Final = re.compile(
    r"\btimeout\b|\bbreak\b|\bexit\b|-(?:lt|le|gt|ge)\b|\(\(|\bseq\b|SECONDS", re.IGNORECASE
)
_POLL_COMMAND: Final = re.compile(r"\b(?:kubectl|oc|curl|nc|wget|pg_isready)\b")


def find_sync_position(item: ManifestWithLocations) -> tuple[int, int] | None:
    """Return the phase and wave in which the object is applied; None if there are several, or none."""
    if sync_annotations.is_skipped(item.manifest):
        return None
    if not sync_annotations.is_hook(item.manifest):
        return PHASES.index(SyncPhase.SYNC), sync_annotations.read_wave(item.manifest)
    sync_phases = [phase for phase in sync_annotations.list_hook_phases(item.manifest) if phase in PHASES]
    return (PHASES.index(sync_phases[0]), sync_annotations.read_wave(item.manifest)) if len(sync_phases) == 1 else None


def _find_late_dependencies(repository: RepositoryView) -> Iterator[Violation]:
    for rendering in repository.renderings:
        if rendering.declaration is None:
            continue
        for item in rendering.items:
            position = find_sync_position(item) if item.group_kind in WAVE_BLOCKING_KINDS else None
            if position is not None:
                yield from _check_dependencies(rendering, item, position)


def _check_dependencies(
    rendering: RenderedSource, item: ManifestWithLocations, position: tuple[int, int]
) -> Iterator[Violation]:
    for dependency in list_dependencies(item):
        required_item = _find_dependency(rendering, item, dependency)
        required_position = find_sync_position(required_item) if required_item else None
        if required_item and required_position is not None and required_position > position:
            position_text, required_text = _render_position(position), _render_position(required_position)
            message = (
                f"{item.name} is in {position_text} and needs {required_item.name} in {required_text}: the "
                "sync never gets there"
            )
            fix = f"put {required_item.name} into an earlier wave than {item.name}"
            yield Violation(
                item.find_location(*dependency.path), message, fix, item.name, ".".join(map(str, dependency.path))
            )


def _find_dependency(
    rendering: RenderedSource, item: ManifestWithLocations, dependency: PodDependency
) -> ManifestWithLocations | None:
    for namespace in dict.fromkeys((item.key.namespace, rendering.resolve_namespace(item), "")):
        required_item = rendering.by_key.get(ResourceKey(dependency.group, dependency.kind, namespace, dependency.name))
        if required_item:
            return required_item
    return None


def _render_position(position: tuple[int, int]) -> str:
    phase, wave = position
    return f"wave {wave}" if PHASES[phase] is SyncPhase.SYNC else f"{PHASES[phase]} (wave {wave})"


def _find_invalid_annotations(repository: RepositoryView) -> Iterator[Violation]:
    for _, item in repository.list_objects():
        wave_text = sync_annotations.get_annotation(item.manifest, names.SYNC_WAVE)
        if wave_text is not None and not _INTEGER.fullmatch(wave_text):
            message = f"{item.name}: sync-wave {wave_text!r} is not an integer, so it counts as 0"
            location = item.find_location("metadata", "annotations", names.SYNC_WAVE)
            yield Violation(location, message, 'use an integer, such as "1"', item.name, names.SYNC_WAVE)
        for word in sync_annotations.split_annotation(item.manifest, names.HOOK):
            if word not in _HOOK_TYPES:
                message = f"{item.name}: {word!r} is not a hook type, so the object is not applied as a hook"
                location = item.find_location("metadata", "annotations", names.HOOK)
                fix = f"use one of {', '.join(_HOOK_TYPES)}"
                yield Violation(location, message, fix, item.name, names.HOOK)


def _find_expiring_jobs(repository: RepositoryView) -> Iterator[Violation]:
    for rendering, item in repository.list_objects():
        if rendering.declaration is None or item.group_kind != JOB or sync_annotations.is_hook(item.manifest):
            continue
        seconds = item.get_value("spec", "ttlSecondsAfterFinished")
        if seconds is None:
            continue
        message = f"{item.name} is deleted {seconds} s after it finishes, then missing and OutOfSync: it is not a hook"
        fix = f"make it a hook ({names.HOOK}: Sync), or remove ttlSecondsAfterFinished"
        yield Violation(
            item.find_location("spec", "ttlSecondsAfterFinished"),
            message,
            fix,
            item.name,
            "spec.ttlSecondsAfterFinished",
        )


def _find_leftover_hooks(repository: RepositoryView) -> Iterator[Violation]:
    for _, item in repository.list_objects():
        if item.group_kind != JOB or not sync_annotations.is_hook(item.manifest) or not item.key.name:
            continue
        policies = sync_annotations.list_delete_policies(item.manifest)
        if DeletePolicy.BEFORE_HOOK_CREATION in policies or len(policies) > 1:
            continue
        if DeletePolicy.HOOK_SUCCEEDED in policies:
            effect = "stays if it fails, and the next sync finds it failed instead of running it again"
        else:
            effect = "stays if it succeeds, and the next sync does not run it again"
        location = item.find_location("metadata", "annotations", names.HOOK_DELETE_POLICY)
        fix = f"set {names.HOOK_DELETE_POLICY}: BeforeHookCreation, or remove the annotation"
        file_fix = item.build_fix(
            set_annotation(names.HOOK_DELETE_POLICY, DeletePolicy.BEFORE_HOOK_CREATION), "metadata"
        )
        yield Violation(location, f"{item.name} {effect}", fix, item.name, names.HOOK_DELETE_POLICY, file_fix=file_fix)


def _find_unlimited_waits(repository: RepositoryView) -> Iterator[Violation]:
    for _, item in repository.list_objects():
        if item.group_kind != JOB or item.get_value("spec", "activeDeadlineSeconds") is not None:
            continue
        for container in list_containers(item):
            script = join_commands(container)
            if _WAIT_LOOP.search(script) and _POLL_COMMAND.search(script) and not _LOOP_LIMIT.search(script):
                message = f"{item.name} waits in a loop without a limit, so the sync may hang forever"
                fix = "set spec.activeDeadlineSeconds, or limit the attempts"
                yield Violation(
                    item.find_location(*container.path), message, fix, item.name, str(container.spec.get("name", ""))
                )


RULES: Final = (
    AnalysisRule(
        "AGY121",
        Severity.ERROR,
        "A wave needs an object of a later wave",
        "The Pods wait for the object, the wave waits for the Pods, and the object waits for the wave: the sync hangs"
        " until it is terminated.",
        "Both objects are in the same Application; the Pod cannot start without the other one (it is not optional); and"
        " a wave ends only when workloads that run Pods are healthy.",
        "Put the required object into an earlier wave than the one that needs it.",
        _find_late_dependencies,
    ),
    AnalysisRule(
        "AGY132",
        Severity.WARNING,
        "A hook Job is left behind and blocks the next run",
        "A finished Job does not run again. The next sync applies it unchanged, and takes its old result for the new"
        " one: it fails at once, or continues without having run the hook.",
        "The Job is a hook with a fixed name, and its delete policy keeps it after either success or failure.",
        "Use BeforeHookCreation, which is also the default without the annotation.",
        _find_leftover_hooks,
        "by setting the annotation",
    ),
    AnalysisRule(
        "AGY133",
        Severity.WARNING,
        "A Job waits without a limit",
        "If the condition never becomes true, the Job and the sync run forever: no error, no retry.",
        "The script loops until a command succeeds, has neither a counter nor a timeout nor a break, and the Job has no"
        " activeDeadlineSeconds.",
        "Set spec.activeDeadlineSeconds, or limit attempts; `argosy generate wait-for-image` prints a Job that does.",
        _find_unlimited_waits,
    ),
    AnalysisRule(
        "AGY134",
        Severity.ERROR,
        "A wave or hook annotation is invalid",
        "A wave that is not an integer counts as 0; an object with an unknown hook type is never applied.",
        "Waves are integers, and there are seven hook types; the value is neither.",
        "Use a quoted integer, or one of the hook types.",
        _find_invalid_annotations,
    ),
    AnalysisRule(
        "AGY135",
        Severity.WARNING,
        "A Job that is not a hook is deleted after it finishes",
        "Kubernetes deletes the Job after its time to live; Argo CD then finds it missing, shows OutOfSync, and creates"
        " it again with the next sync.",
        "The Job is an ordinary object of an Application, and ttlSecondsAfterFinished is set.",
        "Make it a hook, which may be deleted, or remove ttlSecondsAfterFinished.",
        _find_expiring_jobs,
    ),
)
