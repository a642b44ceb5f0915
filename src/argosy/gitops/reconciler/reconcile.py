"""Reconciles one Application: source, render, policy, diff, sync, health and status.

In: an Application and the settings in force. Out: the patch for the Application, and when to reconcile again. Never:
knows how a step works; writes the Application itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final

from argosy import annotations as names
from argosy.errors import Forbidden, PolicyError, SourceError, SourceUnreachable, UserError
from argosy.gitops.application import Application
from argosy.gitops.application.finalizers import is_controller_finalizer
from argosy.gitops.application.project import Project
from argosy.gitops.application.refresh_annotations import HARD_REFRESH
from argosy.gitops.application.step_results import Assessment, HealthStatus, SyncStatus
from argosy.gitops.live import CacheReader
from argosy.gitops.reconciler.app_state import AppState
from argosy.gitops.reconciler.deletion_reconcile_result import build_deletion_result
from argosy.gitops.reconciler.desired_state import DesiredStateBuilder, DesiredStateRequest, format_load_error
from argosy.gitops.reconciler.destination import (
    DestinationCluster,
    DestinationRegistry,
    DestinationUnavailable,
    LocalDestinationRegistry,
    every_kind_is_cached,
)
from argosy.gitops.reconciler.impersonation import impersonate_service_account
from argosy.gitops.reconciler.object_permissions import find_deletion_refusal
from argosy.gitops.reconciler.operation_dispatch import OperationDispatcher
from argosy.gitops.reconciler.operation_runner import format_conditions
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.gitops.reconciler.render_cache import RenderCache, RenderWorkers
from argosy.gitops.reconciler.settings_snapshot import ReconcilerSettings
from argosy.gitops.reconciler.status_patch import ReconcileResult, SettledPass, StatusReporter
from argosy.gitops.reconciler.unknown_state import (
    build_unknown_state,
    build_unread_conditions,
    read_compared_revisions,
    validate_application,
)
from argosy.gitops.status.conditions import AppCondition, ConditionType, conditions_to_wire
from argosy.gitops.status.shared_wire_fields import as_mapping
from argosy.gitops.status.status_builder import RECONCILED_AT, is_outdated, is_recent
from argosy.gitops.sync.app_deletion import DeletionStep, advance_deletion, needs_hooks
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import GroupKind, ResourceKey

DELETION_HOOKS_UNKNOWN: Final = "cannot determine the deletion hooks"
LIVE_STATE_ERROR: Final = "Failed to load live state"
HOST_OUTAGE_GRACE_SECONDS: Final = 180.0  # argo: an unreachable Git host is not reported for so many seconds
UNREACHABLE_RETRY_SECONDS: Final = 15.0  # seconds until an unreachable host is tried again
MIN_RENDER_RETRY_SECONDS: Final = 1.0  # lower bound for the retry of a render
# the kinds that define projects and destination clusters
PROJECT_AND_CLUSTER_KINDS: Final = (GroupKind("argoproj.io", "AppProject"), GroupKind("", "Secret"))
UNCACHED_KIND_RETRY_SECONDS: Final = 2.0  # seconds until the cache is checked for these kinds again


class Reconciler:
    """Runs the steps for one Application at a time, and keeps per-Application state between passes."""

    def __init__(
        self,
        cluster: ReadYourWritesClient,
        cache: CacheReader,
        workers: RenderWorkers,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        is_kind_cached: Callable[[GroupKind], bool] = every_kind_is_cached,
    ) -> None:
        """`cluster` holds the Applications; `destinations` gives access to the clusters that they deliver to."""
        self.cluster, self.now, self.monotonic, self._is_kind_cached = cluster, now, monotonic, is_kind_cached
        self.desired_states = DesiredStateBuilder(RenderCache(workers, now=now))
        self.operation_dispatcher = OperationDispatcher(self.desired_states, now)
        self.local_destination = DestinationCluster(
            cluster, cache, self.desired_states, now, is_kind_cached=is_kind_cached
        )
        self.destinations: DestinationRegistry = LocalDestinationRegistry(self.local_destination)
        self.status_reporter = StatusReporter(now)
        self._settled_passes: dict[ResourceKey, SettledPass] = {}
        self._unwritten_passes: dict[ResourceKey, SettledPass] = {}  # of which the patch is not written yet
        self._unreachable_since: dict[
            ResourceKey, float
        ] = {}  # monotonic time since which the Git host has been unreachable
        self._owned_since: dict[ResourceKey, float] = {}  # monotonic time at which this replica became the owner

    def invalidate(self, app: ResourceKey) -> None:
        """Forget the last result, because a child of a managed object changed and health may differ."""
        self._settled_passes.pop(app, None)
        self._unwritten_passes.pop(app, None)
        self.status_reporter.invalidate(app)

    def mark_written(self, app: Application, settled: SettledPass) -> None:
        """Record that the result of a pass was written, unless the Application was invalidated meanwhile."""
        if self._unwritten_passes.pop(app.key, None) is settled:
            self._settled_passes[app.key] = replace(settled, app=app)

    def is_settled(self, app: Manifest) -> bool:
        """True if the last pass left nothing to do for this resourceVersion, so that its event needs no new pass."""
        settled = self._settled_passes.get(key_of(app))
        version = app["metadata"].get("resourceVersion")
        return settled is not None and bool(version) and settled.app.wire["metadata"].get("resourceVersion") == version

    def forget(self, app: ResourceKey) -> None:
        self.desired_states.forget(app)
        for destination in self.destinations.list_connected():
            destination.comparer.forget(app)
            destination.operation_runner.forget(app)
        self.invalidate(app)
        self._unreachable_since.pop(app, None)
        self._owned_since.pop(app, None)

    def on_ownership_gained(self, app: ResourceKey) -> None:
        """Ignore revisions resolved before now: the previous owner may have synced a newer commit."""
        self._owned_since[app] = time.monotonic()

    def _limit_revision_age(self, app: Application, max_age: float) -> float:
        """Limit how old a resolved revision may be, in seconds, to the time since this replica owns the Application."""
        owned_since = self._owned_since.get(app.key)
        return max_age if owned_since is None else min(max_age, time.monotonic() - owned_since)

    async def reconcile(
        self,
        app: Application,
        settings: ReconcilerSettings,
        requested_at: float | None = None,
        *,
        is_hard: bool = False,
    ) -> ReconcileResult:
        """Run one idempotent pass.

        Requests since `requested_at`, a monotonic time, share one answer of the Git host.
        """
        waited = (
            0.0 if requested_at is None else self._limit_revision_age(app, max(0.0, time.monotonic() - requested_at))
        )
        project = settings.projects.get(app.project)
        unread_settings = build_unread_conditions(settings)
        errors = unread_settings or validate_application(app, project, settings)
        app = settings.clusters.resolve_destination(app)
        refresh = app.annotations.get(names.REFRESH)
        has_no_target = project is None or settings.clusters.find(app.destination) is None
        if has_no_target and not all(map(self._is_kind_cached, PROJECT_AND_CLUSTER_KINDS)):
            return ReconcileResult(
                wait=UNCACHED_KIND_RETRY_SECONDS
            )  # the project or cluster may exist, but its kind is not cached yet
        if app.deletion_timestamp and has_no_target:
            # argo: without a known project or cluster nothing can be deleted, so the finalizers are removed
            return ReconcileResult(
                {
                    "metadata": {
                        "finalizers": [
                            finalizer for finalizer in app.finalizers if not is_controller_finalizer(finalizer)
                        ]
                    }
                }
            )
        if app.deletion_timestamp and unread_settings:
            return self._build_deletion_result(
                app,
                DeletionStep(app.finalizers, wait=UNREACHABLE_RETRY_SECONDS, error=format_conditions(unread_settings)),
            )
        if project is None or (errors and not app.deletion_timestamp):
            return self.status_reporter.build_result(
                app,
                settings,
                build_unknown_state(app, errors, is_invalid=True),
                self.operation_dispatcher.reject(app, errors),
                refresh,
            )
        with self.destinations.enter(app) as destination:
            if isinstance(destination, DestinationUnavailable):
                return self._report_unavailable(app, settings, destination, refresh)
            if app.deletion_timestamp:
                return await self._delete_resources(destination, app, project, destination.localize_settings(settings))
            refresh = HARD_REFRESH if is_hard else refresh
            result = await self._reconcile_at_destination(
                destination, app, project, destination.localize_settings(settings), refresh, waited
            )
            return self._with_render_retry(app, settings, result)

    def _with_render_retry(
        self, app: Application, settings: ReconcilerSettings, result: ReconcileResult
    ) -> ReconcileResult:
        """Requeue when a render that exhausted its worker may be retried, at the latest at the next reconciliation."""
        retry = self.desired_states.renders.seconds_until_retry(app)
        if retry is None or result.wait is not None:
            return result
        return replace(result, wait=max(MIN_RENDER_RETRY_SECONDS, min(retry, settings.reconciliation_seconds or retry)))

    async def _reconcile_at_destination(
        self,
        destination: DestinationCluster,
        app: Application,
        project: Project,
        settings: ReconcilerSettings,
        refresh: str | None,
        waited: float,
    ) -> ReconcileResult:
        try:
            app_state = await self._compare(destination, app, project, settings, refresh, waited)
        except SourceUnreachable:
            return ReconcileResult(wait=UNREACHABLE_RETRY_SECONDS)
        settled = self._settled_passes.get(app.key)
        is_status_fresh = is_recent(app.status.get(RECONCILED_AT), format_timestamp(self.now()))
        unlisted = destination.unlisted_conditions(app_state)
        if is_status_fresh and settled is not None and settled.is_valid_for(app, app_state, settings, unlisted):
            return ReconcileResult(wait=UNREACHABLE_RETRY_SECONDS if unlisted else None)
        self._settled_passes.pop(app.key, None)
        operation = await self.operation_dispatcher.run(destination, app, project, settings, app_state, waited)
        reported_state = replace(app_state, conditions=(*app_state.conditions, *unlisted)) if unlisted else app_state
        result = self.status_reporter.build_result(
            app, settings, reported_state, operation, app.annotations.get(names.REFRESH), destination
        )
        if unlisted and result.wait is None:
            result = replace(
                result, wait=UNREACHABLE_RETRY_SECONDS
            )  # no event announces that the kind can be listed again
        if operation.changes_nothing(app) and "finalizers" not in (result.patch or {}).get("metadata", {}):
            settled_pass = SettledPass(app, app_state, settings, unlisted)
            (self._settled_passes if result.patch is None else self._unwritten_passes)[app.key] = settled_pass
            return replace(result, settled=settled_pass)
        return result

    def _report_unavailable(
        self, app: Application, settings: ReconcilerSettings, unavailable: DestinationUnavailable, refresh: str | None
    ) -> ReconcileResult:
        """Report Unknown for a destination that is unavailable. A running operation continues when it is back."""
        if not unavailable.reason:
            return ReconcileResult(wait=unavailable.wait)
        if app.deletion_timestamp:
            error = [AppCondition(ConditionType.DELETION_ERROR, unavailable.reason)]
            new_conditions = conditions_to_wire(
                app.status.get("conditions"), error, {error[0].type}, format_timestamp(self.now())
            )
            is_reported = new_conditions == (app.status.get("conditions") or [])
            return ReconcileResult(
                None if is_reported else {"status": {"conditions": new_conditions}}, wait=unavailable.wait
            )
        conditions = [AppCondition(ConditionType.COMPARISON_ERROR, f"{LIVE_STATE_ERROR}: {unavailable.reason}")]
        app_state = build_unknown_state(app, conditions, read_compared_revisions(app))
        app_state = replace(app_state, health=Assessment(HealthStatus.UNKNOWN))
        return self.status_reporter.build_result(
            app, settings, app_state, self.operation_dispatcher.postpone(app, unavailable), refresh
        )

    async def _compare(
        self,
        destination: DestinationCluster,
        app: Application,
        project: Project,
        settings: ReconcilerSettings,
        refresh: str | None,
        waited: float = 0.0,
    ) -> AppState:
        max_age = waited if refresh is not None else self._limit_revision_age(app, settings.reconciliation_seconds)
        request = DesiredStateRequest(
            app.sources, tuple(source.ref for source in app.sources), max_age, refresh == HARD_REFRESH
        )
        kinds = await destination.cluster.kinds()
        try:
            desired = await self.desired_states.build(app, project, request, settings, kinds)
        except UserError as error:
            if isinstance(error, SourceUnreachable) and refresh is None and self._tolerates_outage(app):
                raise
            message = format_load_error(error)
            revisions = (
                (error.last_good_revision,) if isinstance(error, SourceError) and error.last_good_revision else ()
            )
            app_state = build_unknown_state(app, [AppCondition(ConditionType.COMPARISON_ERROR, message)], revisions)
            # argo: health of the live objects is reported even if the desired state cannot be loaded
            return replace(
                app_state, health=await destination.comparer.assess_tracked(app, settings) or app_state.health
            )
        self._unreachable_since.pop(app.key, None)
        try:
            return await destination.comparer.compare_app_state(
                app, project, desired, settings, kinds, repeat_dry_runs=refresh is not None
            )
        except UserError as error:
            message = f"{LIVE_STATE_ERROR}: {error}"
            return build_unknown_state(app, [AppCondition(ConditionType.COMPARISON_ERROR, message)], desired.revisions)

    def _tolerates_outage(self, app: Application) -> bool:
        """argo: a known sync status is kept while the Git host is unreachable for a moment."""
        has_known_status = as_mapping(app.status.get("sync")).get("status") in (
            SyncStatus.SYNCED,
            SyncStatus.OUT_OF_SYNC,
        )
        if not has_known_status or app.operation is not None or app.deletion_timestamp or is_outdated(app):
            return False
        since = self._unreachable_since.setdefault(app.key, self.monotonic())
        return self.monotonic() - since < HOST_OUTAGE_GRACE_SECONDS

    # -- deletion --------------------------------------------------------------------------------------------------

    async def _delete_resources(
        self, destination: DestinationCluster, app: Application, project: Project, settings: ReconcilerSettings
    ) -> ReconcileResult:
        """argo: delete the resources of the Application before its finalizers are removed."""
        app_state = await self._compare(destination, app, project, settings, None)
        kinds = await destination.cluster.kinds()

        def find_refusal(manifest: Manifest) -> str:
            return find_deletion_refusal(manifest, app, project, settings, kinds, None)

        # argo: no deletion hook is skipped because its source cannot be loaded
        if app_state.resources is None and needs_hooks(app):
            messages = "; ".join(condition.message for condition in app_state.conditions)
            return self._build_deletion_result(
                app,
                DeletionStep(
                    app.finalizers, wait=UNREACHABLE_RETRY_SECONDS, error=f"{DELETION_HOOKS_UNKNOWN}: {messages}"
                ),
            )
        tracked = app_state.live or destination.comparer.list_tracked(app, settings)
        try:
            live = await destination.comparer.list_owned(app, tracked, settings, kinds)
        except UserError as error:  # keep the finalizers: objects that cannot be read may still exist
            return self._build_deletion_result(
                app, DeletionStep(app.finalizers, wait=UNREACHABLE_RETRY_SECONDS, error=str(error))
            )
        try:
            step = await advance_deletion(
                app,
                live,
                app_state.comparison.hooks,
                # Unlike Argo CD, which deletes with its own rights if no account matches.
                cluster=impersonate_service_account(destination.cluster, app, project, settings),
                assess_all=settings.assess_all,
                find_refusal=find_refusal,
            )
        except (PolicyError, Forbidden) as error:
            return self._build_deletion_result(
                app, DeletionStep(app.finalizers, wait=UNREACHABLE_RETRY_SECONDS, error=str(error))
            )
        return self._build_deletion_result(app, step)

    def _build_deletion_result(self, app: Application, step: DeletionStep) -> ReconcileResult:
        return build_deletion_result(app, step, format_timestamp(self.now()))
