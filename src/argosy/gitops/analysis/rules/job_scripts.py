"""Rules about Jobs that wait, start builds, or call the API server without permission.

In: a repository. Out: violations. Never: reports a missing permission that may be granted elsewhere.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.gitops.analysis.fix_edit_builders import change_command_texts
from argosy.gitops.analysis.kubectl_calls import KubectlCall, list_kubectl_calls, singularize
from argosy.gitops.analysis.pod_specs import PodContainer, find_pod_spec_path, join_commands, list_containers
from argosy.gitops.analysis.repository_view import ManifestWithLocations, RenderedSource, RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import Severity, Violation
from argosy.gitops.analysis.rules.sync_order import PHASES, find_sync_position
from argosy.gitops.analysis.unset_shell_loop_counters import find_unset_counters
from argosy.gitops.application.operations import SyncPhase
from argosy.kube.well_known_kinds import JOB

_RBAC_GROUP: Final = "rbac.authorization.k8s.io"
_LOOP_KEYWORD: Final = re.compile(r"\b(?:until|while)\b")
_BUILD_START: Final = re.compile(r"\b(oc\s+start-build|tkn\s+pipeline\s+start)\b([^\n;|&]*)")
_WAIT_FLAG: Final = re.compile(r"--follow|--wait|--showlog|(?:^|\s)-[Fw]\b")


def _list_job_scripts(
    repository: RepositoryView,
) -> Iterator[tuple[RenderedSource, ManifestWithLocations, PodContainer, str]]:
    for rendering, item in repository.list_objects():
        if item.group_kind == JOB:
            for container in list_containers(item):
                yield rendering, item, container, join_commands(container)


def _find_pre_sync_deadlocks(repository: RepositoryView) -> Iterator[Violation]:
    for rendering in repository.renderings:
        if rendering.declaration is None:
            continue
        for item, container, awaited in _list_pre_sync_waits(rendering):
            message = f"{item.name} runs in PreSync and waits for {awaited.name}, which is created only afterwards"
            yield Violation(
                item.find_location(*container.path),
                message,
                _render_sync_hook_fix(item, awaited),
                item.name,
                awaited.name,
            )


def _find_folder_deadlocks(repository: RepositoryView) -> Iterator[Violation]:
    for rendering in _list_folders_without_application(repository):
        for item, container, awaited in _list_pre_sync_waits(rendering):
            message = f"{item.name} runs in PreSync and waits for {awaited.name} in the same folder: an Application" \
                      " that delivers the folder creates it only after the hook"  # fmt: skip
            yield Violation(
                item.find_location(*container.path),
                message,
                _render_sync_hook_fix(item, awaited),
                item.name,
                awaited.name,
            )


def _list_folders_without_application(repository: RepositoryView) -> Iterator[RenderedSource]:
    """Yield kustomizations and charts that no Application uses, and the plain files of each folder."""
    files = list(repository.unrendered_manifests)
    for rendering in repository.renderings:
        if rendering.declaration is None and rendering.is_partial:
            yield rendering
        elif rendering.declaration is None:
            files += rendering.items
    by_folder: dict[str, list[ManifestWithLocations]] = {}
    for item in files:
        by_folder.setdefault(posixpath.dirname(item.find_location().file), []).append(item)
    for folder, items in by_folder.items():
        yield RenderedSource(None, folder, tuple(items))


def _list_pre_sync_waits(
    rendering: RenderedSource,
) -> Iterator[tuple[ManifestWithLocations, PodContainer, ManifestWithLocations]]:
    """Yield each PreSync Job, the container that waits, and the object of a later phase that it waits for."""
    for item in rendering.list_of_kind(*JOB):
        position = find_sync_position(item)
        if position is None or PHASES[position[0]] is not SyncPhase.PRE_SYNC:
            continue
        for container in list_containers(item):
            script = join_commands(container)
            for call in list_kubectl_calls(script):
                if call.waits_for_deletion or not (
                    call.verb == "wait" or (call.verb == "get" and _LOOP_KEYWORD.search(script))
                ):
                    continue
                awaited = next(
                    (other for other in rendering.items if _is_awaited_object(call, rendering, item, other)), None
                )
                awaited_position = find_sync_position(awaited) if awaited else None
                if awaited and awaited_position and awaited_position[0] > position[0]:
                    yield item, container, awaited


def _render_sync_hook_fix(item: ManifestWithLocations, awaited: ManifestWithLocations) -> str:
    return f"make {item.name} a Sync hook in a wave after {awaited.name}"


def _is_awaited_object(
    call: KubectlCall, rendering: RenderedSource, job: ManifestWithLocations, other: ManifestWithLocations
) -> bool:
    namespace = call.namespace or rendering.resolve_namespace(job)
    is_same_namespace = rendering.resolve_namespace(other) == namespace
    return bool(call.name) and other.key.name == call.name and other.key.kind.lower() == call.kind and is_same_namespace


def _find_unawaited_builds(repository: RepositoryView) -> Iterator[Violation]:
    for rendering, item, container, script in _list_job_scripts(repository):
        position = find_sync_position(item)
        match = _BUILD_START.search(script)
        if rendering.declaration is None or position is None or match is None or _WAIT_FLAG.search(match[2]):
            continue
        if _LOOP_KEYWORD.search(script) or any(call.verb == "wait" for call in list_kubectl_calls(script)):
            continue
        if later_item := next(
            (other for other in rendering.items if (find_sync_position(other) or position) > position), None
        ):
            message = (
                f"{item.name} starts a build and ends at once: {later_item.name} in a later wave does not wait for it"
            )
            fix = "wait in the Job (oc start-build --wait, tkn pipeline start --showlog), or in a Job of the next wave"
            file_fix = item.build_fix(change_command_texts(container.path, _add_wait_flag), *container.path)
            yield Violation(item.find_location(*container.path), message, fix, item.name, file_fix=file_fix)


def _add_wait_flag(script: str) -> str:
    """Return the script with a flag that waits, if the call is a plain one on its own line."""

    def waits(match: re.Match[str]) -> str:
        flag = "--wait" if match[1].startswith("oc") else "--showlog"
        is_plain = re.fullmatch(r"[\w\s./=:-]*", match[2]) and match[2].strip()
        return f"{match[1]}{match[2].rstrip()} {flag}" if is_plain else match[0]

    return _BUILD_START.sub(waits, script)


def _find_unset_counters(repository: RepositoryView) -> Iterator[Violation]:
    manifests = (*repository.unrendered_manifests, *(item for _, item in repository.list_objects()))
    for item in manifests:
        for container in list_containers(item):
            if container.spec.get("envFrom"):
                continue  # it may be set there
            env = container.spec.get("env")
            variables = (
                [variable.get("name") for variable in env if isinstance(variable, dict)]
                if isinstance(env, list)
                else []
            )
            for counter in find_unset_counters(join_commands(container)):
                if counter.name in variables:
                    continue
                outcome = "set -u ends the script there" if counter.ends_script else "the loop never runs"
                message = f"{item.name} compares ${counter.name} in a wait loop, but sets it only inside the loop:" \
                          f" the first comparison fails, and {outcome}"  # fmt: skip
                fix = f"write {counter.name}=0 before the loop"
                yield Violation(item.find_location(*container.path), message, fix, item.name, counter.name)


def _find_missing_permissions(repository: RepositoryView) -> Iterator[Violation]:
    for rendering, item, container, script in _list_job_scripts(repository):
        path = find_pod_spec_path(item) or ()
        account = item.get_string(*path, "serviceAccountName")
        granted = _list_granted_rules(rendering, account, rendering.resolve_namespace(item)) if account else None
        if granted is None:
            continue
        for call in list_kubectl_calls(script):
            if call.namespace not in ("", rendering.resolve_namespace(item)):
                continue
            verb = "list" if call.verb == "get" and not call.name else "get" if call.verb == "wait" else call.verb
            if not any(_allows(rule, verb, call.kind) for rule in granted):
                message = f"{item.name} needs {verb} on {call.resource}, which its ServiceAccount {account} may not do"
                fix = f"add the verb {verb} on {call.resource} to a Role of {account}"
                yield Violation(item.find_location(*container.path), message, fix, item.name, f"{verb} {call.resource}")


def _list_granted_rules(rendering: RenderedSource, account: str, namespace: str) -> list[Mapping[str, Any]] | None:
    """Return every rule granted to the account; None if some may be granted elsewhere."""
    if not any(candidate.key.name == account for candidate in rendering.list_of_kind("", "ServiceAccount")):
        return None
    granted_rules: list[Mapping[str, Any]] = []
    bindings = [
        *rendering.list_of_kind(_RBAC_GROUP, "RoleBinding"),
        *rendering.list_of_kind(_RBAC_GROUP, "ClusterRoleBinding"),
    ]
    account_bindings = [
        candidate
        for candidate in bindings
        if any(_is_subject(subject, account) for subject in candidate.get_list("subjects"))
    ]
    for binding in account_bindings:
        kind, name = binding.get_string("roleRef", "kind"), binding.get_string("roleRef", "name")
        role = next(
            (candidate for candidate in rendering.list_of_kind(_RBAC_GROUP, kind) if candidate.key.name == name), None
        )
        if role is None or "aggregationRule" in role.manifest:
            return None
        granted_rules += [rule for rule in role.get_list("rules") if isinstance(rule, dict)]
    return granted_rules if account_bindings else None


def _is_subject(subject: Any, account: str) -> bool:
    return isinstance(subject, dict) and subject.get("kind") == "ServiceAccount" and subject.get("name") == account


def _allows(rule: Mapping[str, Any], verb: str, kind: str) -> bool:
    verbs, resources = rule.get("verbs") or (), rule.get("resources") or ()
    return ("*" in verbs or verb in verbs) and any(
        resource == "*" or singularize(str(resource).partition("/")[0]) == kind for resource in resources
    )


RULES: Final = (
    AnalysisRule(
        "AGY131",
        Severity.ERROR,
        "A PreSync hook waits for an object that is created later",
        "The first sync never gets past the hook: the object is created only after the hook has finished.",
        "The hook's script waits for an object by kind and name, and the same Application creates that object in the"
        " phase after it.",
        "Make it a Sync hook in a wave after the object.",
        _find_pre_sync_deadlocks,
    ),
    AnalysisRule(
        "AGY136",
        Severity.WARNING,
        "A Job starts a build and does not wait for it",
        "The wave ends with the Job, not with the build: the next wave uses an image that does not exist yet.",
        "The script starts a build or pipeline without a flag that waits, waits in no other way, and has later waves.",
        "Wait in the Job, or with a Job in the next wave; `argosy generate wait-for-image` prints one.",
        _find_unawaited_builds,
        "by adding a flag, if the call is a plain one",
    ),
    AnalysisRule(
        "AGY137",
        Severity.ERROR,
        "A Job calls the API server without permission",
        "Each call fails with Forbidden; a loop around it never ends.",
        "The ServiceAccount, all its bindings here and all roles that they name are rendered with the Job,"
        " and no rule in them grants the verb on the kind.",
        "Add the verb and the resource to the Role.",
        _find_missing_permissions,
    ),
    AnalysisRule(
        "AGY138",
        Severity.ERROR,
        "The counter of a wait loop is never set",
        "The shell cannot compare a variable that has no value: the test fails, the loop is skipped, and the script"
        " goes on, or fails, without having waited.",
        "The loop compares the variable as a number in `[ ]` or `test` (or the script uses `set -u`) and changes it in"
        " its body; nothing else in the script sets it, the container has it neither from env nor from envFrom, and the"
        " script sources no other file.",
        "Set it before the loop, such as ELAPSED=0; `argosy generate wait-for-image` prints a Job that waits.",
        _find_unset_counters,
    ),
    AnalysisRule(
        "AGY139",
        Severity.WARNING,
        "A PreSync hook waits for an object of its own folder",
        "As soon as an Application delivers the folder, the first sync never gets past the hook: the object is"
        " created only after the hook has finished.",
        "No Application here names the folder, kustomization or chart; its hook waits for an object by kind and name,"
        " and that object is in the same folder, in a later phase. In a folder that an Application names, this is"
        " AGY131.",
        "Make it a Sync hook in a wave after the object.",
        _find_folder_deadlocks,
    ),
)
