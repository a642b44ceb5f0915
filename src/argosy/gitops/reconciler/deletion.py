"""Deletes the resources of an Application before its finalizers are removed.

In: an Application that is being deleted, its compared state. Out: DeletionStep, ReconcileResult. Never: removes a
finalizer while an object that cannot be read may still exist.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import ClusterError, Conflict, PolicyError, UserError
from argosy.gitops.application import Application
from argosy.gitops.application.finalizer_names import is_controller_finalizer
from argosy.gitops.application.project_spec import Project
from argosy.gitops.policy.projects import find_permission_error
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.destination_cluster import DestinationCluster
from argosy.gitops.reconciler.impersonation import impersonate_service_account
from argosy.gitops.reconciler.object_permission_and_deletion_check import (
    find_deletion_refusal,
    find_tracking_problem,
    has_namespace,
)
from argosy.gitops.reconciler.reconcile_result_patch import ReconcileResult, list_refresh_requests
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.status import application_event_manifests
from argosy.gitops.status.conditions import AppCondition, ConditionType, conditions_to_wire
from argosy.gitops.status.status_builder import is_recent
from argosy.gitops.status.status_json_conversions import as_mappings
from argosy.gitops.sync.app_deletion import advance_deletion, needs_hooks_for_next_step
from argosy.gitops.sync.deletion_step import DeletionChecks, DeletionStep
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

DELETION_HOOKS_UNKNOWN: Final = "cannot determine the deletion hooks"
DELETION_RETRY_SECONDS: Final = 15.0  # until a deletion that must wait is tried again


async def delete_resources(
    destination: DestinationCluster,
    app: Application,
    project: Project,
    settings: ReconcilerSettings,
    app_state: AppState,
) -> DeletionStep:
    """Take one step of the deletion. An error becomes a condition, and the finalizers stay."""
    # argo: no deletion hook is skipped because its source cannot be loaded
    if not app_state.desired.is_known and needs_hooks_for_next_step(app):
        messages = "; ".join(condition.message for condition in app_state.conditions)
        return _refuse(app, f"{DELETION_HOOKS_UNKNOWN}: {messages}")
    kinds = await destination.cluster.kinds()

    def find_refusal(manifest: Manifest) -> str:
        return find_deletion_refusal(manifest, app, project, settings, kinds, None)

    def find_hook_refusal(key: ResourceKey) -> str:
        is_namespaced = has_namespace(key, kinds)
        return find_permission_error(project, key, is_namespaced=is_namespaced, destination=app.destination)

    def find_foreign_owner(manifest: Manifest) -> str:
        return find_tracking_problem(manifest, app, settings)

    def is_included(key: ResourceKey) -> bool:
        """The project decides per object, with a reason for the user."""
        return not settings.exclusions.excludes(key.group_kind)

    tracked = app_state.live or destination.comparer.list_tracked(app, settings)
    try:
        live = await destination.comparer.list_owned(app, tracked, settings, kinds, is_included)
    except UserError as error:  # objects that cannot be read may still exist
        return _refuse(app, str(error))
    try:
        return await advance_deletion(
            app,
            live,
            app_state.comparison.hooks,
            # Unlike Argo CD, which deletes with its own rights if no account matches.
            cluster=impersonate_service_account(destination.cluster, app, project, settings),
            assess_all=settings.assess_all,
            checks=DeletionChecks(find_refusal, find_hook_refusal, find_foreign_owner),
            last_error=_read_error(app)[0],
        )
    except PolicyError as error:
        return _refuse(app, str(error))
    except Conflict:
        raise  # expected with several writers
    except ClusterError as error:
        return DeletionStep(app.finalizers, error=str(error), failure=error)


def _refuse(app: Application, error: str) -> DeletionStep:
    return DeletionStep(app.finalizers, wait=DELETION_RETRY_SECONDS, error=error)


def _read_error(app: Application) -> tuple[str, str]:
    """Return the message and the time of the condition DeletionError."""
    for condition in as_mappings(app.status.get("conditions")):
        if condition.get("type") == ConditionType.DELETION_ERROR:
            return str(condition.get("message") or ""), str(condition.get("lastTransitionTime") or "")
    return "", ""


def _choose_error(app: Application, step: DeletionStep, now: str) -> str:
    """Keep a recent error of the same object: our write triggers the next attempt, so a text that changes with each
    attempt would defeat the backoff.
    """
    last_error, since = _read_error(app)
    is_same_object = last_error.partition(": ")[0] == step.error.partition(": ")[0]
    return last_error if step.failure and is_same_object and is_recent(since, now) else step.error


def build_deletion_result(app: Application, step: DeletionStep, now: str) -> ReconcileResult:
    """Build the patch and the Event for one step of the deletion; `now` is an RFC 3339 timestamp."""
    patch: dict[str, Any] = {}
    if handled_requests := list_refresh_requests(app):
        patch["metadata"] = {"annotations": dict.fromkeys(handled_requests)}
    if step.finalizers != app.finalizers:
        patch.setdefault("metadata", {})["finalizers"] = list(step.finalizers)
    error = _choose_error(app, step, now)
    errors = [AppCondition(ConditionType.DELETION_ERROR, error)] if error else []
    before = app.status.get("conditions") or []
    after = conditions_to_wire(before, errors, {ConditionType.DELETION_ERROR}, now)
    if after != before:
        patch["status"] = {"conditions": after}
    is_done = any(map(is_controller_finalizer, app.finalizers)) and not any(
        map(is_controller_finalizer, step.finalizers)
    )
    events = (application_event_manifests.deletion_completed_event(app),) if is_done else ()
    return ReconcileResult(patch or None, events, wait=step.wait, failure=step.failure)
