"""Failure drills of the demo: bad commits and manual edits that can be undone.

In: a running demo, the name of a drill. Out: lines that say what was done and which commands show it. Never: undoes
changes of users; the old value is stored in an annotation of the object.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from argosy.annotations import BEFORE_BREAK
from argosy.cli.cluster_target import TargetOptions, open_target
from argosy.cli.sandbox_data_folder_and_lock import RunningInstance
from argosy.errors import UserError
from argosy.features.demo.content import BEN, DEV, DEV_OVERLAY, RUNTIME_PATCH, STAGING, STAGING_OVERLAY
from argosy.features.demo.examples import find_example
from argosy.gitops.application_client.control_namespace import find_control_namespace, has_engine
from argosy.gitops.workspace.git_repository_creation import RepositoryFile
from argosy.gitops.workspace.hosted_bare_repository import BareRepository, CommitContent
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, ARGOCD, CONFIG_MAP, INFERENCE_SERVICE

COMMIT_TRAILER: Final = "Demo-Break: "
MODEL_NAME: Final = "staging-qwen25-05b-instruct"
REPLICAS_PATCH: Final = "      - op: replace\n        path: /spec/predictor/minReplicas\n"
WRONG_STORAGE_PATCH: Final = "      - op: replace\n        path: /spec/predictor/model/storageUri\n        value: pvc://models/qwen2.5-0.5b-instruct\n"
WRONG_IMAGE_PATCH: Final = RUNTIME_PATCH.format(tag="does-not-exist")
BROKEN_LUA: Final = 'hs = {}\nhs.status = "Healthy"\nreturn hs end\n'
LUA_COMMANDS: Final = (f"argosy app get {DEV}", "argosy health verify")
RESTART_ADVICE: Final = "start the demo again"
EDIT_FIELD_MANAGER: Final = "kubectl-edit"  # k8s: field manager of `kubectl edit`
HEALTH_CHECK_KEY: Final = "resource.customizations.health.serving.kserve.io_InferenceService"


@dataclass(frozen=True)
class CommitDrill:
    """A drill that merges a bad commit: lines that a file should not have, by which the drill is also detected."""

    path: str
    message: str
    bad_lines: str  # the lines
    insert_before: str  # the text they are inserted before; empty: append to the file
    app: str
    commands: tuple[str, ...]  # commands that show it
    needs_sync: bool  # sync after the commit, because the Application has no automated sync

    def apply_to(self, text: str) -> str:
        if not self.insert_before:
            return text.rstrip("\n") + "\n" + self.bad_lines
        return text.replace(self.insert_before, self.bad_lines + self.insert_before, 1)

    def remove_from(self, text: str) -> str:
        """Remove the bad lines; other changes of the file are kept."""
        return text.replace(self.bad_lines, "")


@dataclass(frozen=True)
class EditDrill:
    """A drill that edits a field of a live object."""

    build_key: Callable[[str], ResourceKey]  # given the control namespace
    field: tuple[str, ...]
    build_value: Callable[[Any], Any]  # given the old value
    app: str
    description: str
    commands: tuple[str, ...]
    restore_advice: str  # how to restore the object if it was deleted


COMMIT_DRILLS: Final[Mapping[str, CommitDrill]] = {
    "model": CommitDrill(
        STAGING_OVERLAY,
        "staging: read the model from a claim",
        WRONG_STORAGE_PATCH,
        REPLICAS_PATCH,
        STAGING,
        (f"argosy app get {STAGING}", f"argosy model get {MODEL_NAME} -n {STAGING}"),
        needs_sync=True,
    ),
    "image": CommitDrill(
        DEV_OVERLAY,
        "dev: use the newest runtime",
        WRONG_IMAGE_PATCH,
        "",
        DEV,
        (f"argosy app get {DEV}", f"argosy app tree {DEV}"),
        needs_sync=False,
    ),
}


def _build_edit_drills(has_operator: bool) -> Mapping[str, EditDrill]:
    return {
        "drift": EditDrill(
            lambda _: ResourceKey(*INFERENCE_SERVICE, STAGING, MODEL_NAME),
            ("spec", "predictor", "model", "resources", "limits", "cpu"),
            lambda _: "10",
            STAGING,
            "the CPU limit of the staging model was manually changed to 10",
            (f"argosy app get {STAGING}", f"argosy app diff {STAGING}"),
            f"sync it with: argosy app sync {STAGING}",
        ),
        "branch": EditDrill(
            lambda namespace: ResourceKey(*APPLICATION, namespace, DEV),
            ("spec", "source", "targetRevision"),
            lambda _: "stage1-complete",
            DEV,
            "llmops-dev tracks the branch stage1-complete, which does not exist",
            (f"argosy app get {DEV}",),
            "apply it again, from a clone of the demo's repository: "
            "cd llmops-via-argocd && ./setup_scripts/apply-argocd-apps.sh",
        ),
        "lua": _build_operator_lua_drill() if has_operator else _build_plain_lua_drill(),
    }


def _build_operator_lua_drill() -> EditDrill:
    def broken(checks: Any) -> list[Any]:
        other_checks = [check for check in checks or [] if check.get("kind") != "InferenceService"]
        return [*other_checks, {"group": "serving.kserve.io", "kind": "InferenceService", "check": BROKEN_LUA}]

    description = "the ArgoCD resource has a health check for InferenceServices that does not compile"
    name = "openshift-gitops"
    key = ResourceKey(*ARGOCD, name, name)
    return EditDrill(
        lambda _: key, ("spec", "resourceHealthChecks"), broken, DEV, description, LUA_COMMANDS, RESTART_ADVICE
    )


def _build_plain_lua_drill() -> EditDrill:
    description = "argocd-cm has a health check for InferenceServices that does not compile"
    return EditDrill(
        lambda namespace: ResourceKey(*CONFIG_MAP, namespace, "argocd-cm"),
        ("data", HEALTH_CHECK_KEY),
        lambda _: BROKEN_LUA,
        DEV,
        description,
        LUA_COMMANDS,
        RESTART_ADVICE,
    )


def start_drill(run: RunningInstance, drill_name: str) -> Iterator[str]:
    _require_drills(run)
    yield from asyncio.run(_start_drill(run, drill_name))


def _require_drills(run: RunningInstance) -> None:
    """Raise UserError if the running example has no failure drills."""
    example = find_example(run.repository)
    if not example.has_failure_drills:
        raise UserError(f"the example {example.name} has no failure drills; use the default example: argosy demo")


def list_active_drills(run: RunningInstance) -> list[str]:
    if not find_example(run.repository).has_failure_drills:
        return []

    async def load_names() -> list[str]:
        async with open_target(TargetOptions(data_dir=Path(run.data_dir))) as (cluster, _):
            return await find_active_drills(cluster, BareRepository(Path(run.repository)))

    return asyncio.run(load_names())


def undo_all_drills(run: RunningInstance) -> Iterator[str]:
    _require_drills(run)
    yield from asyncio.run(_undo_all(run))


async def _start_drill(run: RunningInstance, drill_name: str) -> list[str]:
    async with open_target(TargetOptions(data_dir=Path(run.data_dir))) as (cluster, _):
        drill: CommitDrill | EditDrill
        if drill_name in COMMIT_DRILLS:
            drill = COMMIT_DRILLS[drill_name]
            message = await _commit_bad_change(cluster, BareRepository(Path(run.repository)), drill_name, drill)
        else:
            drill = _build_edit_drills(await _has_operator(cluster))[drill_name]
            message = await _apply_edit(cluster, drill, drill_name)
    rollback_lines = [f"     argosy app rollback {drill.app}"] if drill_name == "model" else []
    more_commands = [f"     {command}" for command in drill.commands[1:]]
    return [message, f"look: {drill.commands[0]}", *more_commands, "back: argosy demo fix", *rollback_lines]


async def _has_operator(cluster: Cluster) -> bool:
    return await find_control_namespace(cluster) == "openshift-gitops"


async def _commit_bad_change(cluster: Cluster, repository: BareRepository, name: str, drill: CommitDrill) -> str:
    old_text = repository.read_file(drill.path).decode()
    if drill.bad_lines in old_text:
        raise UserError(f"drill {name} is already active; undo it first with: argosy demo fix")
    new_text = drill.apply_to(old_text)
    if new_text == old_text:
        raise UserError("was changed, so this drill cannot be applied; restore the file first", where=drill.path)
    message = f"{drill.message}\n\n{COMMIT_TRAILER}{name}\n"
    [commit] = repository.commit(
        [CommitContent([RepositoryFile(drill.path, new_text.encode())], message, BEN, int(time.time()))]
    )
    message_line = f"merged {commit[:7]} to main: {drill.message!r} ({drill.path})"
    if drill.needs_sync:
        message_line += f"; {await _sync_application(cluster, drill.app, commit)}"
    return message_line


async def _apply_edit(cluster: Cluster, drill: EditDrill, name: str) -> str:
    key = drill.build_key(await find_control_namespace(cluster))
    live = await cluster.get(key)
    if live is None:
        raise UserError(f"does not exist, so the drill cannot start; {drill.restore_advice}", where=str(key))
    if _is_edit_active(live, drill):
        raise UserError(f"drill {name} is already active; undo it first with: argosy demo fix")
    old_value = _get_field(live, drill.field)
    annotation_patch = {"metadata": {"annotations": {BEFORE_BREAK: json.dumps(old_value)}}}
    await cluster.patch(
        key,
        _add_field_to_patch(annotation_patch, drill.field, drill.build_value(old_value)),
        manager=EDIT_FIELD_MANAGER,
    )
    return drill.description


def _is_edit_active(live: Manifest, drill: EditDrill) -> bool:
    """True if the field still has the bad value; the annotation is no proof, because a sync may have fixed it."""
    stored_value = (live["metadata"].get("annotations") or {}).get(BEFORE_BREAK)
    return stored_value is not None and _get_field(live, drill.field) == drill.build_value(json.loads(stored_value))


async def find_active_drills(cluster: Cluster, repository: BareRepository) -> list[str]:
    """Names of the active drills."""
    merged = [
        name for name, drill in COMMIT_DRILLS.items() if drill.bad_lines in repository.read_file(drill.path).decode()
    ]
    namespace = await find_control_namespace(cluster)
    edit_drills = _build_edit_drills(await _has_operator(cluster))
    live_objects = {
        name: await cluster.get(drill_edit.build_key(namespace)) for name, drill_edit in edit_drills.items()
    }
    return merged + [
        name
        for name, drill_edit in edit_drills.items()
        if (live := live_objects[name]) and _is_edit_active(live, drill_edit)
    ]


async def _undo_all(run: RunningInstance) -> list[str]:
    lines = []
    async with open_target(TargetOptions(data_dir=Path(run.data_dir))) as (cluster, _):
        repository = BareRepository(Path(run.repository))
        for name, drill in COMMIT_DRILLS.items():
            if revert_message := _revert_commit(repository, name, drill):
                lines.append(revert_message)
                lines += (
                    [await _sync_application(cluster, drill.app, repository.list_commits()[-1])]
                    if drill.needs_sync
                    else []
                )
        namespace = await find_control_namespace(cluster)
        for name, edit_drill in _build_edit_drills(await _has_operator(cluster)).items():
            lines += await _undo_edit(cluster, edit_drill, namespace, name)
    return lines or ["no failure drill is active"]


def _revert_commit(repository: BareRepository, name: str, drill: CommitDrill) -> str:
    """Revert the drill's commit and keep later changes. Returns a message; empty if the drill is not active."""
    old_text = repository.read_file(drill.path).decode()
    new_text = drill.remove_from(old_text)
    if new_text == old_text:
        return ""
    message = f'Revert "{drill.message}"\n\n{_render_revert_line(repository, name)}{COMMIT_TRAILER}{name}\n'
    [commit] = repository.commit(
        [CommitContent([RepositoryFile(drill.path, new_text.encode())], message, BEN, int(time.time()))]
    )
    return f"merged {commit[:7]} to main: undoes {drill.message!r} ({drill.path})"


def _render_revert_line(repository: BareRepository, name: str) -> str:
    """`This reverts commit …`, as git writes it, for the newest commit of the drill."""
    for commit, message in repository.list_messages().items():
        if f"{COMMIT_TRAILER}{name}" in message and not message.startswith("Revert "):
            return f"This reverts commit {commit}.\n\n"
    return ""


async def _undo_edit(cluster: Cluster, drill: EditDrill, namespace: str, name: str) -> list[str]:
    key = drill.build_key(namespace)
    live = await cluster.get(key)
    stored_value = ((live or {}).get("metadata", {}).get("annotations") or {}).get(BEFORE_BREAK)
    if live is None or stored_value is None:
        return []
    removal_patch = {"metadata": {"annotations": {BEFORE_BREAK: None}}}
    old_value = json.loads(stored_value)
    if not _is_edit_active(live, drill):  # a sync or a user has fixed it already
        await cluster.patch(key, removal_patch)
        return []
    await cluster.patch(key, _add_field_to_patch(removal_patch, drill.field, old_value), manager=EDIT_FIELD_MANAGER)
    return [f"{name}: restored {'.'.join(drill.field)} of {key.kind}/{key.name}"]


async def _sync_application(cluster: Cluster, name: str, commit: str) -> str:
    """Sync the Application to the commit, without waiting for a refresh. Returns a message."""
    namespace = await find_control_namespace(cluster)
    key = ResourceKey(*APPLICATION, namespace, name)
    application = await cluster.get(key)
    if application is None:
        raise UserError("no longer exists; start the demo again", where=str(key))
    options = application["spec"].get("syncPolicy", {}).get("syncOptions") or []
    sync = {"revision": commit, "syncOptions": options}
    await cluster.patch(key, {"operation": {"sync": sync, "initiatedBy": {"username": "ben"}}})
    if await has_engine(cluster, namespace):
        return f"syncing {name}"
    return f"{name} will be synced when an engine runs: argosy controller"


def _get_field(manifest: Manifest, field: tuple[str, ...]) -> Any:
    value: Any = manifest
    for name in field:
        value = (value or {}).get(name)
    return value


def _add_field_to_patch(patch: Mapping[str, Any], field: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A merge patch with one more field; None removes the field."""
    for name in reversed(field):
        value = {name: value}
    return {**patch, **value}
