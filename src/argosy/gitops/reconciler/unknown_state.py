"""Builds the state of an Application that could not be compared, and names the conditions that a pass owns.

In: an Application, its project, the settings, errors. Out: conditions; an AppState with status Unknown. Never: drops a
condition that the pass did not evaluate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application.step_results import AppComparison, Assessment, HealthStatus, SyncStatus
from argosy.gitops.application.unknown_fields import find_missing_field
from argosy.gitops.policy.projects import (
    describe_forbidden_namespace,
    list_violations,
    permits_application_namespace,
)
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.desired_state_values import DesiredState
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.status.conditions import AppCondition, ConditionType
from argosy.gitops.status.status_json_conversions import as_mapping

LIVE_STATE_ERROR: Final = "Failed to load live state"  # argo: the same message
# argo: each evaluation replaces the conditions that it owns, and no others
SPEC_CONDITIONS: Final = frozenset({ConditionType.INVALID_SPEC_ERROR, ConditionType.UNKNOWN_ERROR})
SOURCE_CONDITIONS: Final = SPEC_CONDITIONS | {
    ConditionType.COMPARISON_ERROR,
    ConditionType.SHARED_RESOURCE_WARNING,
    ConditionType.REPEATED_RESOURCE_WARNING,
    ConditionType.EXCLUDED_RESOURCE_WARNING,
    ConditionType.SOURCE_WARNING,
}
COMPARISON_CONDITIONS: Final = SOURCE_CONDITIONS | {ConditionType.ORPHANED_RESOURCE_WARNING}


def list_evaluated_conditions(app_state: AppState, *, is_auto_sync_evaluated: bool) -> frozenset[ConditionType]:
    """Return the condition types that this pass evaluated; also those of automated sync, if evaluated."""
    if app_state.is_invalid:
        return SPEC_CONDITIONS
    types = COMPARISON_CONDITIONS if app_state.resources is not None else SOURCE_CONDITIONS
    return types | {ConditionType.SYNC_ERROR} if is_auto_sync_evaluated else types


def validate_application(app: Application, project: Project | None, settings: ReconcilerSettings) -> list[AppCondition]:
    """Return the errors of the Application itself."""
    if project is not None and not permits_application_namespace(project, app, settings.control_namespace):
        # argo: the project cannot be loaded, so nothing else is checked
        return [AppCondition(ConditionType.UNKNOWN_ERROR, describe_forbidden_namespace(project, app))]
    resolved_app = settings.clusters.resolve_destination(app)
    clusters = settings.clusters if project is not None and project.only_scoped_clusters else None
    messages = list_violations(
        project,
        resolved_app,
        control_namespace=settings.control_namespace,
        clusters=clusters,
        destination_error=settings.clusters.find_destination_error(app.destination),
    )
    if not app.sources:
        messages.append("spec.source.repoURL and either spec.source.path or spec.source.chart are required")
    field_name = "spec.sources" if app.has_many_sources else "spec.source"
    messages += [f"{field_name}: {text}" for source in app.sources if (text := find_missing_field(source))]
    return [AppCondition(ConditionType.INVALID_SPEC_ERROR, text) for text in messages]


def build_unread_conditions(settings: ReconcilerSettings) -> list[AppCondition]:
    """Return a condition for each restricting setting that was never read, because its limits are unknown."""
    return [
        AppCondition(ConditionType.UNKNOWN_ERROR, f"{fault}; until then no Application is synced")
        for fault in settings.unread_restrictions
    ]


def adjust_sync_status(app: Application, app_state: AppState) -> AppComparison:
    """argo: an Application is OutOfSync if managedNamespaceMetadata changed, which is in no manifest."""
    namespace_metadata = as_mapping(as_mapping(app.wire.get("spec")).get("syncPolicy")).get("managedNamespaceMetadata")
    state = app.state
    if namespace_metadata is None or state is None or not state.has_result or not app_state.is_complete:
        return app_state.comparison
    if namespace_metadata == (dict(state.namespace_metadata) if state.namespace_metadata is not None else None):
        return app_state.comparison
    return replace(app_state.comparison, status=SyncStatus.OUT_OF_SYNC)


def build_unknown_state(
    app: Application, conditions: Sequence[AppCondition], revisions: tuple[str, ...] = (), *, is_invalid: bool = False
) -> AppState:
    """argo: if something cannot be determined, the whole status is Unknown; a valid Application keeps its health."""
    health_text = "" if is_invalid else as_mapping(app.status.get("health")).get("status")
    health = HealthStatus(health_text) if health_text in set(HealthStatus) else HealthStatus.UNKNOWN
    empty_desired = DesiredState(app.sources, revisions, (), is_known=False)
    comparison = replace(AppComparison(), status=SyncStatus.UNKNOWN)
    return AppState(
        empty_desired, comparison, {}, health=Assessment(health), conditions=tuple(conditions), is_invalid=is_invalid
    )


def build_unavailable_state(app: Application, reason: str) -> AppState:
    """Return the state of an Application whose destination cannot be used: even its health is unknown."""
    condition = AppCondition(ConditionType.COMPARISON_ERROR, f"{LIVE_STATE_ERROR}: {reason}")
    app_state = build_unknown_state(app, [condition], read_compared_revisions(app))
    desired = replace(app_state.desired, tools=_read_compared_tools(app))
    return replace(app_state, desired=desired, health=Assessment(HealthStatus.UNKNOWN))


def read_compared_revisions(app: Application) -> tuple[str, ...]:
    """Return the revisions of the last comparison."""
    sync = as_mapping(app.status.get("sync"))
    revisions = sync.get("revisions") if app.has_many_sources else [sync.get("revision")]
    return (
        tuple(str(revision or "") for revision in revisions) if isinstance(revisions, list) and any(revisions) else ()
    )


def _read_compared_tools(app: Application) -> tuple[str, ...]:
    """Return the tools of the last comparison."""
    tools = app.status.get("sourceTypes") if app.has_many_sources else [app.status.get("sourceType")]
    return tuple(str(tool or "") for tool in tools) if isinstance(tools, list) and any(tools) else ()
