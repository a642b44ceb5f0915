"""Reconciles one Application: source, render, policy, diff, sync, health and status.

In: an Application and the settings in force. Out: the patch for the Application, and when to reconcile again. Never:
knows how a step works; writes the Application itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from argosy import annotations as names
from argosy.errors import SourceUnreachable
from argosy.gitops.application import Application
from argosy.gitops.application.finalizer_names import is_controller_finalizer
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application.refresh_request_annotations import HARD_REFRESH
from argosy.gitops.live import CacheReader
from argosy.gitops.reconciler.app_memo import AppMemos, SettledPass
from argosy.gitops.reconciler.app_state_comparison import report_unreadable_as_unknown
from argosy.gitops.reconciler.deletion import build_deletion_result, delete_resources
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder
from argosy.gitops.reconciler.desired_state_loader import DesiredStateLoader
from argosy.gitops.reconciler.destination_cluster import (
    DestinationCluster,
    DestinationRegistry,
    DestinationUnavailable,
    LocalDestinationRegistry,
    every_kind_is_cached,
)
from argosy.gitops.reconciler.operation_dispatcher import OperationDispatcher
from argosy.gitops.reconciler.operation_runner import format_conditions
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.gitops.reconciler.reconcile_result_patch import OperationResult, ReconcileResult, StatusReporter
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.render_cache import RenderCache, RenderWorkers
from argosy.gitops.reconciler.request_owner import send_requests_for
from argosy.gitops.reconciler.unknown_state import (
    build_unavailable_state,
    build_unknown_state,
    build_unread_conditions,
    validate_application,
)
from argosy.gitops.status.status_builder import RECONCILED_AT, is_recent
from argosy.gitops.sync.deletion_step import DeletionStep
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import APP_PROJECT, SECRET

UNREACHABLE_RETRY_SECONDS: Final = 15.0  # until something that does not answer is tried again
MIN_RENDER_RETRY_SECONDS: Final = 1.0
PROJECT_AND_CLUSTER_KINDS: Final = (APP_PROJECT, SECRET)
UNCACHED_KIND_RETRY_SECONDS: Final = 2.0  # until the cache is checked for these kinds again


class PassInputs(NamedTuple):
    """What a full pass works with, once nothing speaks against it."""

    destination: DestinationCluster
    app: Application
    project: Project
    settings: ReconcilerSettings  # of the destination
    refresh: str | None
    seconds_waited: float  # since the refresh was requested


class Reconciler:
    """Runs the steps for one Application at a time, and remembers results between passes."""

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
        self.cluster, self.now, self._is_kind_cached, self.memos = cluster, now, is_kind_cached, AppMemos()
        self.desired_states = DesiredStateBuilder(RenderCache(workers, self.memos, now=now), self.memos)
        self.desired_loader = DesiredStateLoader(self.desired_states, self.memos, monotonic)
        self.operation_dispatcher = OperationDispatcher(self.desired_states, now)
        self.status_reporter = StatusReporter(now, self.memos)
        self.local_destination = DestinationCluster(
            cluster, cache, self.desired_states, self.memos, now, is_kind_cached=is_kind_cached
        )
        self.destinations: DestinationRegistry = LocalDestinationRegistry(self.local_destination)

    async def reconcile(
        self,
        app: Application,
        settings: ReconcilerSettings,
        requested_at: float | None = None,
        *,
        is_hard: bool = False,
    ) -> ReconcileResult:
        """Run one idempotent pass: desired state, comparison with the live state, operation, report.

        Requests since `requested_at`, a monotonic time, share one answer of the Git host.
        """
        with self._begin_pass(app, settings, requested_at, is_hard=is_hard) as begun:
            if isinstance(begun, ReconcileResult):
                return begun
            destination, app, project, settings, refresh, seconds_waited = begun
            kinds = await destination.cluster.kinds()
            try:
                desired = await self.desired_loader.load(app, project, settings, kinds, refresh, seconds_waited)
            except SourceUnreachable:  # the known status stays
                return ReconcileResult(wait=UNREACHABLE_RETRY_SECONDS)
            memo = self.memos[app.key].get_connection(destination.cluster).comparison
            comparison = destination.comparer.compare_app_state(
                app, project, desired, settings, kinds, memo, repeat_dry_runs=refresh is not None
            )
            app_state = await report_unreadable_as_unknown(app, desired, comparison)
            if _is_deletion_due(app):
                with send_requests_for(app):
                    step = await delete_resources(destination, app, project, settings, app_state)
                return build_deletion_result(app, step, self._format_now())
            compared = SettledPass(app, app_state, settings, destination.unlisted_conditions(app_state))
            if self._has_nothing_to_do(compared):
                return self._with_retry(compared, ReconcileResult())
            with send_requests_for(app):
                operation = await self.operation_dispatcher.run(
                    destination, app, project, settings, app_state, seconds_waited
                )
            return self._with_retry(compared, self._report(destination, compared, operation))

    @contextmanager
    def _begin_pass(
        self, app: Application, settings: ReconcilerSettings, requested_at: float | None, *, is_hard: bool
    ) -> Iterator[PassInputs | ReconcileResult]:
        """Yield the inputs of a full pass, or the result of one that ends here. While it is open, the destination is
        in use.
        """
        seconds_waited = self.desired_loader.compute_request_age(app, requested_at)
        project = self._find_project(app, settings)
        app = settings.clusters.resolve_destination(app)
        if isinstance(project, ReconcileResult):
            yield project
            return
        refresh = HARD_REFRESH if is_hard else app.annotations.get(names.REFRESH)
        with self.destinations.enter(app) as destination:
            if isinstance(destination, DestinationUnavailable):
                yield self._report_unavailable(app, settings, destination)
            else:
                settings = destination.localize_settings(settings)
                yield PassInputs(destination, app, project, settings, refresh, seconds_waited)

    def _find_project(self, app: Application, settings: ReconcilerSettings) -> Project | ReconcileResult:
        """Return the project of a valid Application in a known cluster, otherwise what is reported instead."""
        project = settings.projects.get(app.project)
        unread_settings = build_unread_conditions(settings)
        errors = unread_settings or validate_application(app, project, settings)
        app = settings.clusters.resolve_destination(app)
        if project is None or settings.clusters.find(app.destination) is None:
            if not all(map(self._is_kind_cached, PROJECT_AND_CLUSTER_KINDS)):
                return ReconcileResult(wait=UNCACHED_KIND_RETRY_SECONDS)  # they may exist
            if app.deletion_timestamp:
                return _remove_finalizers(app)
        if app.deletion_timestamp and unread_settings:
            step = DeletionStep(
                app.finalizers, wait=UNREACHABLE_RETRY_SECONDS, error=format_conditions(unread_settings)
            )
            return build_deletion_result(app, step, self._format_now())
        if project is None or (errors and not _is_deletion_due(app)):
            unknown = build_unknown_state(app, errors, is_invalid=True)
            operation = self.operation_dispatcher.reject(app, errors, is_project_known=project is not None)
            return self.status_reporter.build_result(app, settings, unknown, operation)
        return project

    def _has_nothing_to_do(self, compared: SettledPass) -> bool:
        """True if the last pass left nothing to do, and this one has the same inputs."""
        memo = self.memos[compared.app.key]
        memo.orphan_count = compared.app_state.orphan_count
        if self._is_status_fresh(compared.app) and memo.settled is not None and memo.settled.is_same_as(compared):
            return True
        memo.settled = None
        return False

    def _report(
        self, destination: DestinationCluster, compared: SettledPass, operation: OperationResult
    ) -> ReconcileResult:
        app_state = compared.app_state
        reported = replace(app_state, conditions=(*app_state.conditions, *compared.unlisted_conditions))
        result = self.status_reporter.build_result(compared.app, compared.settings, reported, operation, destination)
        return self._remember_if_settled(result, operation, compared)

    def _remember_if_settled(
        self, result: ReconcileResult, operation: OperationResult, settled: SettledPass
    ) -> ReconcileResult:
        """Remember a pass that left nothing to do, at once or when its patch is written."""
        changes_finalizers = "finalizers" in (result.patch or {}).get("metadata", {})
        if changes_finalizers or not operation.changes_nothing(settled.app):
            return result
        memo = self.memos[settled.app.key]
        if result.patch is None:
            memo.settled = settled
        else:
            memo.unwritten = settled
        return replace(result, settled=settled)

    def _with_retry(self, compared: SettledPass, result: ReconcileResult) -> ReconcileResult:
        """Requeue when a kind may be listed again, or when a render that exhausted its worker may be retried."""
        if result.wait is not None:
            return result
        if compared.unlisted_conditions:  # no event announces that the kind can be listed again
            return replace(result, wait=UNREACHABLE_RETRY_SECONDS)
        retry = self.desired_states.renders.seconds_until_retry(compared.app)
        if retry is None:
            return result
        # at the latest at the next reconciliation
        seconds = min(retry, compared.settings.reconciliation_seconds or retry)
        return replace(result, wait=max(MIN_RENDER_RETRY_SECONDS, seconds))

    def _report_unavailable(
        self, app: Application, settings: ReconcilerSettings, unavailable: DestinationUnavailable
    ) -> ReconcileResult:
        """Report Unknown for a destination that is unavailable. A running operation continues when it is back."""
        if not unavailable.reason:
            return ReconcileResult(wait=unavailable.wait)
        if app.deletion_timestamp:
            step = DeletionStep(app.finalizers, wait=unavailable.wait, error=unavailable.reason)
            return build_deletion_result(app, step, self._format_now())
        unknown = build_unavailable_state(app, unavailable.reason)
        return self.status_reporter.build_result(
            app, settings, unknown, self.operation_dispatcher.postpone(app, unavailable)
        )

    def _is_status_fresh(self, app: Application) -> bool:
        return is_recent(app.status.get(RECONCILED_AT), self._format_now())

    def _format_now(self) -> str:
        return format_timestamp(self.now())

    # -- what the controller asks of results ---------------------------------------------------------------------------

    def mark_written(self, app: Application, settled: SettledPass) -> None:
        """Record that the result of a pass was written, unless the Application was invalidated meanwhile."""
        memo = self.memos[app.key]
        if memo.unwritten is settled:
            memo.settled = replace(settled, app=app)
        memo.unwritten = None

    def is_settled(self, app: Manifest) -> bool:
        """True if the last pass left nothing to do for this resourceVersion, so that its event needs no new pass."""
        memo = self.memos.find(key_of(app))
        version = app["metadata"].get("resourceVersion")
        if memo is None or memo.settled is None or not version:
            return False
        return bool(memo.settled.app.wire["metadata"].get("resourceVersion") == version)

    def invalidate(self, app: ResourceKey) -> None:
        """Forget the last result, because a child of a managed object changed and health may differ."""
        if (memo := self.memos.find(app)) is not None:
            memo.invalidate()


def _is_deletion_due(app: Application) -> bool:
    """argo: a deletion waits until the operation is over, or rejected."""
    return bool(app.deletion_timestamp) and app.operation is None


def _remove_finalizers(app: Application) -> ReconcileResult:
    """argo: without a known project or cluster nothing can be deleted, so the finalizers are removed."""
    finalizers = [finalizer for finalizer in app.finalizers if not is_controller_finalizer(finalizer)]
    return ReconcileResult({"metadata": {"finalizers": finalizers}})
