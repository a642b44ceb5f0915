"""Loads the desired state of an Application in one pass; what cannot be loaded becomes a condition.

In: an Application, how old revisions may be. Out: DesiredState. Never: reads a live object.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from argosy.errors import SourceUnreachable, UserError
from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application.refresh_request_annotations import HARD_REFRESH
from argosy.gitops.application.step_results import SyncStatus
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder, format_load_error
from argosy.gitops.reconciler.desired_state_values import DesiredState, DesiredStateRequest
from argosy.gitops.reconciler.local_manifests import find_compared_manifests
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.status.conditions import AppCondition, ConditionType
from argosy.gitops.status.status_builder import is_comparison_outdated
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.client import Catalog

HOST_OUTAGE_GRACE_SECONDS: Final = 180.0  # argo: an unreachable Git host is not reported for so many seconds


class DesiredStateLoader:
    def __init__(self, desired_states: DesiredStateBuilder, memos: AppMemos, monotonic: Callable[[], float]) -> None:
        self._desired_states, self._memos, self._monotonic = desired_states, memos, monotonic

    async def load(
        self,
        app: Application,
        project: Project,
        settings: ReconcilerSettings,
        kinds: Catalog,
        refresh: str | None,
        seconds_waited: float,
    ) -> DesiredState:
        """Resolve and render the sources. `seconds_waited` is the age of the request for a refresh.

        Raises SourceUnreachable if the known status is kept, because the Git host may answer again soon.
        """
        # argo: refs are also resolved again for new Applications and for new sources
        is_resolved_again = refresh is not None or is_comparison_outdated(app)
        max_age = (
            seconds_waited if is_resolved_again else self._limit_revision_age(app, settings.reconciliation_seconds)
        )
        request = DesiredStateRequest(
            app.sources,
            tuple(source.ref for source in app.sources),
            max_age,
            refresh == HARD_REFRESH,
            local_manifests=find_compared_manifests(app),
            reports_unverified=not app.deletion_timestamp,  # a deletion runs hooks of the desired state
        )
        try:
            desired = await self._desired_states.build(app, project, request, settings, kinds)
        except UserError as error:
            if isinstance(error, SourceUnreachable) and refresh is None and self._tolerates_outage(app):
                raise
            return build_unknown_desired_state(app, error)
        self._memos[app.key].unreachable_since = None
        return desired

    def compute_request_age(self, app: Application, requested_at: float | None) -> float:
        """Return the age of a request for a refresh in seconds, 0 without one."""
        if requested_at is None:
            return 0.0
        return self._limit_revision_age(app, max(0.0, time.monotonic() - requested_at))

    def _limit_revision_age(self, app: Application, max_age: float) -> float:
        """Limit how old a resolved revision may be, in seconds.

        It must not be older than the time since this replica owns the Application: the previous owner may have synced a
        newer commit.
        """
        owned_since = self._memos[app.key].owned_since
        return max_age if owned_since is None else min(max_age, time.monotonic() - owned_since)

    def _tolerates_outage(self, app: Application) -> bool:
        """argo: a known sync status is kept while the Git host is unreachable for a moment."""
        is_known = as_mapping(app.status.get("sync")).get("status") in (SyncStatus.SYNCED, SyncStatus.OUT_OF_SYNC)
        if not is_known or app.operation is not None or app.deletion_timestamp or is_comparison_outdated(app):
            return False
        memo, now = self._memos[app.key], self._monotonic()
        if memo.unreachable_since is None:
            memo.unreachable_since = now
        return now - memo.unreachable_since < HOST_OUTAGE_GRACE_SECONDS


def build_unknown_desired_state(app: Application, error: UserError) -> DesiredState:
    """Return the desired state of sources that cannot be loaded. argo: its revision is the ref as it is written."""
    revisions = () if app.has_many_sources else tuple(source.ref for source in app.sources if source.ref)
    condition = AppCondition(ConditionType.COMPARISON_ERROR, format_load_error(error))
    return DesiredState(app.sources, revisions, (), conditions=(condition,), is_known=False)
