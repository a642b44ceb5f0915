"""Rules about the order of a sync: waves, hooks, and Jobs that wait or are deleted.

In: a repository. Out: violations. Never: considers an optional dependency.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy import annotations as names
from argosy.gitops.analysis.fixes import annotated
from argosy.gitops.analysis.pod_specs import AWAITED, Need, containers, needs, script_of
from argosy.gitops.analysis.repository import Item, Rendering, Repository
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.violation import Severity, Sight
from argosy.gitops.application import hooks
from argosy.gitops.application.hooks import DeletePolicy
from argosy.gitops.application.operations import Phase
from argosy.kube.names import ResourceKey

PHASES: Final = (Phase.PRE_SYNC, Phase.SYNC, Phase.POST_SYNC)
_JOB: Final = ("batch", "Job")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_HOOKS: Final = (*Phase, "Skip")
_LOOP: Final = re.compile(r"^\s*(?:until\b|while\s+(?:true|:|!|\[))", re.MULTILINE)
_BOUND: Final = re.compile(r"\btimeout\b|\bbreak\b|\bexit\b|-(?:lt|le|gt|ge)\b|\(\(|\bseq\b|SECONDS", re.IGNORECASE)
_POLLS: Final = re.compile(r"\b(?:kubectl|oc|curl|nc|wget|pg_isready)\b")


def turn_of(item: Item) -> tuple[int, int] | None:
    """Return the phase and wave in which the object is applied; None if there are several, or none."""
    if hooks.is_skipped(item.manifest):
        return None
    if not hooks.is_hook(item.manifest):
        return PHASES.index(Phase.SYNC), hooks.wave(item.manifest)
    found = [phase for phase in hooks.phases(item.manifest) if phase in PHASES]
    return (PHASES.index(found[0]), hooks.wave(item.manifest)) if len(found) == 1 else None


def _too_late(repository: Repository) -> Iterator[Sight]:
    for rendering in repository.renderings:
        if rendering.written is None:
            continue
        for item in rendering.items:
            turn = turn_of(item) if item.kind in AWAITED else None
            if turn is not None:
                yield from _late_needs(rendering, item, turn)


def _late_needs(rendering: Rendering, item: Item, turn: tuple[int, int]) -> Iterator[Sight]:
    for need in needs(item):
        made = _made(rendering, item, need)
        later = turn_of(made) if made else None
        if made and later is not None and later > turn:
            said, what = _said(turn), _said(later)
            message = f"{item.name} is in {said} and needs {made.name} in {what}: the sync never gets there"
            fix = f"put {made.name} into an earlier wave than {item.name}"
            yield Sight(item.at(*need.path), message, fix, item.name, ".".join(map(str, need.path)))


def _made(rendering: Rendering, item: Item, need: Need) -> Item | None:
    for namespace in dict.fromkeys((item.key.namespace, rendering.place_of(item), "")):
        found = rendering.by_key.get(ResourceKey(need.group, need.kind, namespace, need.name))
        if found:
            return found
    return None


def _said(turn: tuple[int, int]) -> str:
    phase, wave = turn
    return f"wave {wave}" if PHASES[phase] is Phase.SYNC else f"{PHASES[phase]} (wave {wave})"


def _odd_words(repository: Repository) -> Iterator[Sight]:
    for _, item in repository.objects():
        written = hooks.annotation_text(item.manifest, names.SYNC_WAVE)
        if written is not None and not _WHOLE.fullmatch(written):
            message = f"{item.name}: sync-wave {written!r} is not an integer, so it counts as 0"
            place = item.at("metadata", "annotations", names.SYNC_WAVE)
            yield Sight(place, message, 'use an integer, such as "1"', item.name, names.SYNC_WAVE)
        for word in hooks.words(item.manifest, names.HOOK):
            if word not in _HOOKS:
                message = f"{item.name}: {word!r} is not a hook type, so the object is not applied as a hook"
                place = item.at("metadata", "annotations", names.HOOK)
                fix = f"use one of {', '.join(_HOOKS)}"
                yield Sight(place, message, fix, item.name, names.HOOK)


def _vanishing(repository: Repository) -> Iterator[Sight]:
    for rendering, item in repository.objects():
        if rendering.written is None or item.kind != _JOB or hooks.is_hook(item.manifest):
            continue
        seconds = item.value("spec", "ttlSecondsAfterFinished")
        if seconds is None:
            continue
        message = f"{item.name} is deleted {seconds} s after it finishes, then missing and OutOfSync: it is not a hook"
        fix = f"make it a hook ({names.HOOK}: Sync), or remove ttlSecondsAfterFinished"
        yield Sight(item.at("spec", "ttlSecondsAfterFinished"), message, fix, item.name, "spec.ttlSecondsAfterFinished")


def _left_behind(repository: Repository) -> Iterator[Sight]:
    for _, item in repository.objects():
        if item.kind != _JOB or not hooks.is_hook(item.manifest) or not item.key.name:
            continue
        policies = hooks.delete_policies(item.manifest)
        if DeletePolicy.BEFORE_HOOK_CREATION in policies or len(policies) > 1:
            continue
        if DeletePolicy.HOOK_SUCCEEDED in policies:
            what = "stays if it fails, and the next sync finds it failed instead of running it again"
        else:
            what = "stays if it succeeds, and the next sync does not run it again"
        place = item.at("metadata", "annotations", names.HOOK_DELETE_POLICY)
        fix = f"set {names.HOOK_DELETE_POLICY}: BeforeHookCreation, or remove the annotation"
        mend = item.mended(annotated(names.HOOK_DELETE_POLICY, DeletePolicy.BEFORE_HOOK_CREATION), "metadata")
        yield Sight(place, f"{item.name} {what}", fix, item.name, names.HOOK_DELETE_POLICY, mend=mend)


def _endless(repository: Repository) -> Iterator[Sight]:
    for _, item in repository.objects():
        if item.kind != _JOB or item.value("spec", "activeDeadlineSeconds") is not None:
            continue
        for container in containers(item):
            script = script_of(container)
            if _LOOP.search(script) and _POLLS.search(script) and not _BOUND.search(script):
                message = f"{item.name} waits in a loop without a limit, so the sync may hang forever"
                fix = "set spec.activeDeadlineSeconds, or limit the attempts"
                yield Sight(item.at(*container.path), message, fix, item.name, str(container.spec.get("name", "")))


RULES: Final = (
    Rule(
        "AGY121",
        Severity.ERROR,
        "A wave needs an object of a later wave",
        "The Pods wait for the object, the wave waits for the Pods, and the object waits for the wave: the sync hangs"
        " until it is terminated.",
        "Both objects are in the same Application; the Pod cannot start without the other one (it is not optional); and"
        " a wave ends only when workloads that run Pods are healthy.",
        "Put the required object into an earlier wave than the one that needs it.",
        _too_late,
    ),
    Rule(
        "AGY132",
        Severity.WARNING,
        "A hook Job is left behind and blocks the next run",
        "A finished Job does not run again. The next sync applies it unchanged, and takes its old result for the new"
        " one: it fails at once, or continues without having run the hook.",
        "The Job is a hook with a fixed name, and its delete policy keeps it after either success or failure.",
        "Use BeforeHookCreation, which is also the default without the annotation.",
        _left_behind,
        "by setting the annotation",
    ),
    Rule(
        "AGY133",
        Severity.WARNING,
        "A Job waits without a limit",
        "If the condition never becomes true, the Job and the sync run forever: no error, no retry.",
        "The script loops until a command succeeds, has neither a counter nor a timeout nor a break, and the Job has no"
        " activeDeadlineSeconds.",
        "Set spec.activeDeadlineSeconds, or limit attempts; `argosy generate wait-for-image` prints a Job that does.",
        _endless,
    ),
    Rule(
        "AGY134",
        Severity.ERROR,
        "A wave or hook annotation is invalid",
        "A wave that is not an integer counts as 0; an object with an unknown hook type is never applied.",
        "Waves are integers, and there are seven hook types; the value is neither.",
        "Use a quoted integer, or one of the hook types.",
        _odd_words,
    ),
    Rule(
        "AGY135",
        Severity.WARNING,
        "A Job that is not a hook is deleted after it finishes",
        "Kubernetes deletes the Job after its time to live; Argo CD then finds it missing, shows OutOfSync, and creates"
        " it again with the next sync.",
        "The Job is an ordinary object of an Application, and ttlSecondsAfterFinished is set.",
        "Make it a hook, which may be deleted, or remove ttlSecondsAfterFinished.",
        _vanishing,
    ),
)
