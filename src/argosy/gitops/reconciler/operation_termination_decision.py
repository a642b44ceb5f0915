"""Decides whether a running operation must be terminated.

In: an Application with a running operation, its compared state. Out: the reason to terminate it, or "".
Never: terminates an operation itself; ends one that a newer commit would not help.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from argosy.gitops.application import Application, OperationPhase, OperationState
from argosy.gitops.application.project_spec import Project
from argosy.gitops.live import CacheReader, walk_tree
from argosy.gitops.live.app_resources import find_parent_manifest, list_parents
from argosy.gitops.live.stuck_containers import (
    IMAGE_FAILURES,
    is_image_current,
    is_old_replica_set,
    list_waiting_containers,
)
from argosy.gitops.policy.sync_windows import evaluate_sync_windows
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.unknown_state import adjust_sync_status
from argosy.gitops.status.conditions import ConditionType
from argosy.gitops.status.sync_hold_annotation import read_hold
from argosy.gitops.sync.auto_sync_decision import StartSync, SyncTarget, decide_auto_sync, is_already_attempted
from argosy.kube.objects import key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import POD

OPERATION_REMOVED: Final = "its operation was removed from the Application"


def is_operation_removed(app: Application) -> bool:
    """True if an operation is running, and a user removed the `operation` field of the Application."""
    return app.operation is None and app.state is not None and not app.state.phase.is_over


def find_superseding_reason(
    app: Application,
    app_state: AppState,
    target: SyncTarget,
    project: Project,
    settings: ReconcilerSettings,
    cache: CacheReader,
    now: datetime,
) -> str:
    """Return why a newer commit supersedes the running sync; empty if it goes on.

    argo: there a sync that waits for an image keeps newer commits waiting until it is terminated by hand. Here it ends
    if the image cannot be pulled, and an automated sync to another commit would start at once.
    """
    state = app.state
    if state is None or state.phase is not OperationPhase.RUNNING or not state.has_result:
        return ""
    sync = state.request.sync
    if not state.request.is_automated and (sync.revision or sync.revisions or sync.manifests):
        return ""  # a user chose what is synced
    if is_already_attempted(app, state, target) or not _would_sync(app, app_state, target, project, settings, now):
        return ""
    if not (failure := _find_image_failure(state, app_state, cache)):
        return ""
    revisions = ", ".join(revision[:7] for revision in target.revisions)
    return f"superseded by {revisions}, because {failure}"


def _would_sync(
    app: Application,
    app_state: AppState,
    target: SyncTarget,
    project: Project,
    settings: ReconcilerSettings,
    now: datetime,
) -> bool:
    """True if an automated sync would start now if no operation were running."""
    has_errors = any(condition.type is ConditionType.COMPARISON_ERROR for condition in app_state.conditions)
    if not app_state.is_complete or has_errors or read_hold(app.annotations) is not None:
        return False
    if not evaluate_sync_windows(project.windows, app, now, is_manual=False).is_allowed:
        return False
    decision = decide_auto_sync(
        replace(app, operation=None), adjust_sync_status(app, app_state), target, now, settings.heal_backoff
    )
    return isinstance(decision, StartSync)


def _find_image_failure(state: OperationState, app_state: AppState, cache: CacheReader) -> str:
    """Describe a Pod whose image cannot be pulled, below an object that the operation waits for or failed at.

    k8s: a Pod of an older template stays until its successor is ready. It says nothing about this operation.
    """
    live_manifests = app_state.live.values()
    for result in state.results:
        root = app_state.live.get(result.key) or cache.get(result.key)
        if root is None or result.hook_phase is OperationPhase.SUCCEEDED:
            continue
        for pod in walk_tree(cache, {result.key: root}, lambda key: not _is_replaced_replica_set(cache, key)):
            if key_of(pod).group_kind != POD or pod["metadata"].get("deletionTimestamp"):
                continue
            for container in list_waiting_containers(pod):
                if container.reason in IMAGE_FAILURES and is_image_current(pod, container.name, [root], live_manifests):
                    message = f": {container.message}" if container.message else ""
                    return f"Pod {pod['metadata']['name']}, container {container.name}: {container.reason}{message}"
    return ""


def _is_replaced_replica_set(cache: CacheReader, key: ResourceKey) -> bool:
    """True for a ReplicaSet that a newer one of its Deployment replaces."""
    if key.kind != "ReplicaSet" or (replica_set := cache.get(key)) is None:
        return False
    owners = (find_parent_manifest(cache, parent) for parent in list_parents(cache, replica_set))
    return any(owner is not None and is_old_replica_set(replica_set, owner) for owner in owners)
