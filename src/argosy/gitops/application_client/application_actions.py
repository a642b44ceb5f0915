"""Changes an Application and records an Event: refresh, hold, release, rollback, terminate, confirm, delete.

In: an ApplicationService, an Application. Out: the changed Application. Never: a change without its user.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from argosy import annotations as names
from argosy.errors import PolicyError, UserError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.finalizer_names import BACKGROUND_FINALIZER as BACKGROUND_FINALIZER
from argosy.gitops.application.refresh_request_annotations import build_refresh_annotations
from argosy.gitops.application_client.application_service import ApplicationService, current_timestamp
from argosy.gitops.application_client.condition_wait import NO_CONTROLLER_SECONDS, NO_TIMEOUT_SECONDS, ReportProgress
from argosy.gitops.application_client.status_summary import (
    is_busy,
    read_deletion_or_operation_start,
    read_health_status,
    read_synced_revisions,
)
from argosy.gitops.application_client.stuck_pods import find_stuck_sync_reason
from argosy.gitops.application_client.sync_operation_builder import check_no_operation
from argosy.gitops.status import application_event_manifests
from argosy.gitops.status.application_event_manifests import EventReason
from argosy.gitops.status.history import DeploymentRecord, read_deployments
from argosy.gitops.status.operation_state_json_writer import request_to_wire
from argosy.gitops.status.rollback_detection import PREVIOUS_HEALTH_INFO
from argosy.gitops.status.status_json_conversions import as_mappings
from argosy.gitops.status.sync_hold_annotation import SyncHold, hold_to_annotation, read_hold
from argosy.gitops.sync.rollback_request import build_rollback_request
from argosy.kube.client import Propagation
from argosy.kube.controller.object_condition_wait import WaitTimeout, wait_for_object
from argosy.kube.objects import Manifest

FOREGROUND, BACKGROUND = "foreground", "background"
RESOURCES_FINALIZER_PREFIXES: Final = (names.RESOURCES_FINALIZER,)
TERMINATE_TIMEOUT_SECONDS: Final = 30.0  # timeout for a terminated sync


class AutoSyncEnabled(PolicyError):
    """argo: automated sync would undo the rollback immediately."""


async def refresh_and_wait(
    service: ApplicationService,
    app: Application,
    *,
    is_hard: bool,
    timeout_seconds: float,
    report: ReportProgress | None = None,
) -> Application:
    """Request a refresh and wait until the engine has taken it up; report if it takes long."""
    await request_refresh(service, app, is_hard=is_hard)
    latest: list[Manifest | None] = [None]

    def is_taken_up(manifest: Manifest | None) -> bool:
        latest[0] = manifest
        return manifest is None or names.REFRESH not in (manifest["metadata"].get("annotations") or {})

    limit_seconds = timeout_seconds or NO_TIMEOUT_SECONDS
    is_done = await wait_for_object(service.cluster, app.key, is_taken_up, min(limit_seconds, NO_CONTROLLER_SECONDS))
    if not is_done and limit_seconds > NO_CONTROLLER_SECONDS:
        if report:
            report(f"{app.name}: no controller has taken up the refresh yet; is one running? argosy controller")
        is_done = await wait_for_object(service.cluster, app.key, is_taken_up, limit_seconds - NO_CONTROLLER_SECONDS)
    if not is_done:
        message = f"{app.name}: not refreshed within {timeout_seconds:g} s; is a controller running? argosy controller"
        raise WaitTimeout(message)
    if latest[0] is None:
        raise UserError(f"{app.name} was deleted in the meantime")
    return read_application(latest[0])


async def request_refresh(service: ApplicationService, app: Application, *, is_hard: bool) -> None:
    """Request a refresh; the engine carries it out."""
    requested_at = datetime.now(UTC)

    def build_patch(current: Application) -> dict[str, Any]:
        return {
            "metadata": {"annotations": build_refresh_annotations(current.annotations, requested_at, is_hard=is_hard)}
        }

    await service.patch_application(app, build_patch)
    await service.record_event(
        application_event_manifests.refresh_requested_event(
            app, timestamp=current_timestamp(), username=await service.find_user(), is_hard=is_hard
        )
    )


async def hold_automated_sync(service: ApplicationService, app: Application, reason: str) -> tuple[Application, bool]:
    """Hold automated syncs; return the Application and whether anything changed."""
    current = read_hold(app.annotations)
    if current is not None and (not reason or reason == current.reason):
        return app, False
    new_hold = SyncHold(reason, await service.find_user(), current_timestamp(), ", ".join(read_synced_revisions(app)))
    updated = await service.patch_application(app, lambda _: _build_hold_patch(new_hold))
    await service.record_event(application_event_manifests.sync_held_event(app, new_hold))
    return updated, True


def _build_hold_patch(new_hold: SyncHold) -> dict[str, Any]:
    return {"metadata": {"annotations": {names.HOLD: hold_to_annotation(new_hold)}}}


async def release_hold(service: ApplicationService, app: Application) -> tuple[Application, bool]:
    if read_hold(app.annotations) is None:
        return app, False
    updated = await service.patch_application(app, lambda _: {"metadata": {"annotations": {names.HOLD: None}}})
    await service.record_event(
        application_event_manifests.sync_released_event(
            app, timestamp=current_timestamp(), username=await service.find_user()
        )
    )
    return updated, True


def choose_rollback_entry(app: Application, entry_id: int | None, *, is_compat: bool = False) -> DeploymentRecord:
    """Return the requested entry, or the latest that deployed other content than the current one."""
    entries = read_deployments(app.status)
    if entry_id is None:
        if entries and not is_compat and _is_syncing_other_content(app, entries[-1]):
            return entries[-1]
        if len(entries) < 2:
            message = f"{app.name} has no earlier deployment to go back to; see: argosy app history {app.name}"
            raise UserError(message)
        other_content = (
            [] if is_compat else [candidate for candidate in entries if not is_same_content(candidate, entries[-1])]
        )
        return (
            other_content[-1] if other_content else entries[-2]
        )  # argo: the entry before the last, whatever its content
    for entry in entries:
        if entry.id == entry_id:
            return entry
    raise _build_unknown_entry_error(app, entry_id)


def _find_history_entry(app: Application, entry_id: int) -> Mapping[str, Any]:
    """Return an entry of `status.history` as it is written. Raises UserError."""
    for entry, deployment in zip(as_mappings(app.status.get("history")), read_deployments(app.status)):
        if deployment.id == entry_id:
            return entry
    raise _build_unknown_entry_error(app, entry_id)


def _build_unknown_entry_error(app: Application, entry_id: int) -> UserError:
    existing = ", ".join(str(entry.id) for entry in read_deployments(app.status)) or "none"
    return UserError(f"{app.name} has no deployment {entry_id} in its history; existing ones: {existing}")


def is_same_content(left: DeploymentRecord, right: DeploymentRecord) -> bool:
    return (left.revisions, left.sources) == (right.revisions, right.sources)


def is_already_deployed(app: Application, entry: DeploymentRecord) -> bool:
    """True if a rollback to this entry changes nothing from Git."""
    last = read_deployments(app.status)[-1]
    return is_same_content(entry, last) and not _is_syncing_other_content(app, last)


def _is_syncing_other_content(app: Application, entry: DeploymentRecord) -> bool:
    """True if a sync runs that has begun to deploy something else than an entry of the history."""
    state = app.state
    if state is None or state.phase.is_over or not state.has_result or state.request.sync.dry_run:
        return False
    revisions = state.revisions or (state.revision,)
    return (revisions, tuple(state.sources)) != (entry.revisions, tuple(entry.sources))


def would_auto_sync(app: Application) -> bool:
    """True if automated sync would undo a rollback: it is on and not held."""
    automated = app.policy.automated
    return automated is not None and automated.is_on and read_hold(app.annotations) is None


async def roll_back(
    service: ApplicationService,
    app: Application,
    entry: DeploymentRecord,
    *,
    prune: bool,
    hold_reason: str | None,
    dry_run: bool = False,
    report: ReportProgress | None = None,
) -> Application:
    """Request a rollback, with a hold in the same write if given; terminate a stuck sync first."""
    user = await service.find_user()
    # Before any write: the entry may be invalid, and may leave the history while a sync ends.
    history_entry = _find_history_entry(app, entry.id)
    request = build_rollback_request(
        history_entry, username=user, prune=prune, dry_run=dry_run, options=app.policy.options
    )
    if not dry_run and (hold_reason is not None or not would_auto_sync(app)):
        app = await _terminate_stuck_sync(service, app, hold_reason, report)
    new_hold = SyncHold(
        hold_reason or f"rolled back to {entry.id}", user, current_timestamp(), ", ".join(entry.revisions)
    )

    def build_patch(current: Application) -> dict[str, Any]:
        check_no_operation(current)
        if would_auto_sync(current) and hold_reason is None:
            raise AutoSyncEnabled(
                f"{app.name}: rollback cannot be initiated when auto-sync is enabled; "
                f"hold it at the same time: argosy app rollback {app.name} {entry.id} --hold"
            )
        info = {
            "info": [{"name": PREVIOUS_HEALTH_INFO, "value": read_health_status(current)}]
        }  # the only record of this health
        patch: dict[str, Any] = {"operation": {**request.wire, **info}}
        return {**patch, **_build_hold_patch(new_hold)} if hold_reason is not None else patch

    old_hold = read_hold(app.annotations)
    updated = await service.patch_application(app, build_patch)
    if hold_reason is not None and (old_hold is None or old_hold.reason != new_hold.reason):
        await service.record_event(application_event_manifests.sync_held_event(app, new_hold))
    rollback_event = application_event_manifests.rollback_event(
        app, timestamp=current_timestamp(), history_id=entry.id, revision=", ".join(entry.revisions), username=user
    )
    await service.record_event(rollback_event)
    return updated


async def _terminate_stuck_sync(
    service: ApplicationService, app: Application, hold_reason: str | None, report: ReportProgress | None
) -> Application:
    """Terminate a sync that cannot succeed, and wait until it is over; leave one alone that may succeed."""
    if app.deletion_timestamp or not (reason := await find_stuck_sync_reason(service, app)):
        return app
    if hold_reason is not None:  # hold first, else an automated sync could start right after
        app, _ = await hold_automated_sync(service, app, hold_reason)
    if report is not None:
        report(f"{app.name}: terminating the running sync, because it cannot succeed: {reason}")
    with contextlib.suppress(UserError):  # it just ended by itself
        await terminate_operation(service, app)
    latest: list[Manifest | None] = [None]

    def is_idle(manifest: Manifest | None) -> bool:
        latest[0] = manifest
        return manifest is None or not is_busy(read_application(manifest))

    if not await wait_for_object(service.cluster, app.key, is_idle, TERMINATE_TIMEOUT_SECONDS):
        advice = f"is a controller running? argosy controller; then try again: argosy app rollback {app.name}"
        raise WaitTimeout(f"{app.name}: the running sync did not end within {TERMINATE_TIMEOUT_SECONDS:g} s; {advice}")
    if latest[0] is None:
        raise UserError(f"{app.name} was deleted in the meantime")
    return read_application(latest[0])


async def terminate_operation(service: ApplicationService, app: Application) -> Application:
    def build_patch(current: Application) -> dict[str, Any]:
        if not is_busy(current):
            reason = f"no operation is in progress; see: argosy app get {app.name}"
            raise UserError(f"{app.name}: unable to terminate operation: {reason}")
        if current.state is None or current.state.phase.is_over:
            return {"operation": None}  # not started yet
        patch: dict[str, Any] = {"status": {"operationState": {"phase": "Terminating"}}}
        if current.operation is None:  # removed by a user; Argo CD ignores an operationState without it
            patch["operation"] = request_to_wire(current.state.request)
        return patch

    updated = await service.patch_application(app, build_patch)
    user = await service.find_user()
    message = f"{user or application_event_manifests.UNKNOWN_USER} terminated running operation"
    await service.record_event(
        application_event_manifests.build_event(
            app, EventReason.OPERATION_COMPLETED, message, timestamp=current_timestamp(), username=user
        )
    )
    return updated


async def confirm_deletion(service: ApplicationService, app: Application, seen_since: str | None = None) -> Application:
    """Approve pending deletions. `seen_since`: the start time that the user saw; None: the current one."""
    timestamp, user = current_timestamp(), await service.find_user()
    since = read_deletion_or_operation_start(app) if seen_since is None else seen_since

    def build_patch(current: Application) -> dict[str, Any]:
        if read_deletion_or_operation_start(current) != since:
            problem = "that operation is over, and the current one may delete other objects; nothing was confirmed"
            raise UserError(f"{app.name}: {problem}; check again: argosy app get {app.name}")
        # Use the operation's own time: later operations need a new approval, and only the cluster's clock counts.
        return {"metadata": {"annotations": {names.DELETION_APPROVED: since or timestamp}}}

    updated = await service.patch_application(app, build_patch)
    message = f"{user or application_event_manifests.UNKNOWN_USER} confirmed the deletion of resources"
    await service.record_event(
        application_event_manifests.build_event(
            app, EventReason.RESOURCE_UPDATED, message, timestamp=timestamp, username=user
        )
    )
    return updated


async def delete_application(
    service: ApplicationService, app: Application, *, cascades: bool, policy: str = FOREGROUND
) -> None:
    """argo: delete with its managed objects if `cascades`; else they stay."""
    cascade_finalizers = (
        [BACKGROUND_FINALIZER if policy == BACKGROUND else names.RESOURCES_FINALIZER] if cascades else []
    )

    def build_patch(current: Application) -> dict[str, Any] | None:
        other_finalizers = [
            finalizer for finalizer in current.finalizers if not finalizer.startswith(RESOURCES_FINALIZER_PREFIXES)
        ]
        finalizers = [*other_finalizers, *cascade_finalizers]
        return None if tuple(finalizers) == current.finalizers else {"metadata": {"finalizers": finalizers}}

    updated = app if app.deletion_timestamp else await service.patch_application(app, build_patch)
    user = await service.find_user()
    await service.record_event(
        application_event_manifests.deletion_requested_event(updated, timestamp=current_timestamp(), username=user)
    )
    await service.cluster.delete(app.key, propagation=Propagation.BACKGROUND, uid=app.uid or None)
