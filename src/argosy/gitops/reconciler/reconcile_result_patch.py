"""Turns the result of a pass into the patch of the Application.

In: the compared state, the operation, the settings. Out: ReconcileResult: a merge patch, Events, when to reconcile
again. Never: reads a cluster; decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from argosy import annotations as names
from argosy.errors import ClusterError
from argosy.gitops.application import Application, OperationRequest, OperationState
from argosy.gitops.reconciler.app_memo import AppMemos, CachedSummary, SettledPass
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.destination_cluster import DestinationCluster
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.unknown_state import adjust_sync_status, list_evaluated_conditions
from argosy.gitops.status.application_event_manifests import status_change_events
from argosy.gitops.status.conditions import AppCondition
from argosy.gitops.status.history import append_deployment
from argosy.gitops.status.operation_state_json_writer import request_to_wire
from argosy.gitops.status.status_builder import StatusReport, build_status, build_status_patch
from argosy.gitops.status.summary import build_summary
from argosy.gitops.sync.app_deletion import compute_finalizers
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """The result of a pass: a merge patch for the Application, Events, and seconds until the next pass.

    `failure` is raised once all of it is written, so that the next pass follows with backoff.
    """

    patch: dict[str, Any] | None = None
    events: Sequence[Manifest] = ()
    wait: float | None = None
    settled: SettledPass | None = None  # set if nothing is left to do once the patch is written
    failure: ClusterError | None = None


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The operation after this pass."""

    state: OperationState | None
    wait: float | None = None
    new_request: OperationRequest | None = None  # of an automated sync that starts now
    is_over: bool = False
    events: tuple[Manifest, ...] = ()
    conditions: tuple[AppCondition, ...] = field(default_factory=tuple)
    is_auto_sync_evaluated: bool = True  # True if automated sync was evaluated

    def changes_nothing(self, app: Application) -> bool:
        """True if the operation is as it was read and waits for nothing, so that another pass would change nothing."""
        return (
            self.state is app.state
            and not self.is_over
            and (self.wait, self.new_request, self.events) == (None, None, ())
        )


def list_refresh_requests(app: Application) -> list[str]:
    """Return the annotations of a requested refresh, to remove them when it was made.

    argo: removed only if it was not set again meanwhile; here the resourceVersion of the patch ensures that
    """
    if names.REFRESH not in app.annotations:
        return []
    return [annotation for annotation in (names.REFRESH, names.REFRESH_TIMESTAMP) if annotation in app.annotations]


class StatusReporter:
    def __init__(self, now: Callable[[], datetime], memos: AppMemos) -> None:
        self._now, self._memos = now, memos

    def build_result(
        self,
        app: Application,
        settings: ReconcilerSettings,
        app_state: AppState,
        operation: OperationResult,
        destination: DestinationCluster | None = None,
    ) -> ReconcileResult:
        """Build the patch. `destination` is None if nothing was compared."""
        patch: dict[str, Any] = {}
        report = self._build_report(app, settings, app_state, operation)
        if destination is not None and app_state.resources is not None:
            report = replace(report, summary=self._cached_summary(destination, app, app_state))
        new_status = build_status(report)
        if (status_changes := build_status_patch(app.status, new_status)) is not None:
            patch["status"] = status_changes
        if operation.new_request is not None:
            patch["operation"] = request_to_wire(operation.new_request)
        elif operation.is_over:
            patch["operation"] = None
        if handled_requests := list_refresh_requests(app):
            patch["metadata"] = {"annotations": dict.fromkeys(handled_requests)}
        if (
            app_state.is_complete
            and not app.deletion_timestamp  # k8s: then none can be added
            and (finalizers := compute_finalizers(app, app_state.comparison.hooks)) != app.finalizers
        ):
            patch.setdefault("metadata", {})["finalizers"] = list(finalizers)
        status_events = status_change_events(app, new_status, timestamp=report.now)
        return ReconcileResult(patch or None, (*operation.events, *status_events), operation.wait)

    def _build_report(
        self, app: Application, settings: ReconcilerSettings, app_state: AppState, operation: OperationResult
    ) -> StatusReport:
        history = app.status.get("history") or []
        if operation.is_over and operation.state is not None:
            history = append_deployment(history, operation.state, app.history_limit)
        return StatusReport(
            app=app,
            now=format_timestamp(self._now()),
            state=operation.state,
            status=adjust_sync_status(app, app_state).status,
            revisions=app_state.desired.revisions,
            sources=app_state.desired.sources,
            tools=app_state.desired.tools,
            resources=app_state.resources,
            persists_resource_health=settings.persists_resource_health,
            health=app_state.health,
            conditions=(*app_state.conditions, *operation.conditions),
            evaluated_types=list_evaluated_conditions(
                app_state, is_auto_sync_evaluated=operation.is_auto_sync_evaluated
            ),
            is_desired_known=app_state.desired.is_known,
            is_compared=not app_state.is_invalid,
            is_comparison_failed=app_state.resources is None and not app_state.is_invalid,
            history=history,
            controller_namespace="" if app_state.is_invalid else settings.control_namespace,
        )

    def _cached_summary(self, destination: DestinationCluster, app: Application, app_state: AppState) -> dict[str, Any]:
        """Return the cached summary for the same live objects; `AppMemo.invalidate` drops it if a child changes."""
        memo = self._memos[app.key]
        cached = memo.summary
        if cached is not None and cached.live is app_state.live and cached.annotations == app.annotations:
            return cached.summary
        keys = [resource.key for resource in app_state.resources or ()]
        new_summary = build_summary(destination.comparer.list_descendants(app_state), app.annotations, keys)
        memo.summary = CachedSummary(app_state.live, app.annotations, new_summary)
        return new_summary
