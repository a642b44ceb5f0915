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
from argosy.gitops.application.finalizers import BACKGROUND as BACKGROUND_FINALIZER
from argosy.gitops.application.refresh import refresh_asked
from argosy.gitops.application_client.client import Desk, now
from argosy.gitops.application_client.stuck_pods import find_stuck_reason
from argosy.gitops.application_client.summary import deletes_since, health_word, is_busy, revisions
from argosy.gitops.application_client.sync_requests import check_free
from argosy.gitops.application_client.watch import FOR_EVER, UNHEARD, Tell
from argosy.gitops.status import events
from argosy.gitops.status.events import Reason
from argosy.gitops.status.history import Deployment, deployments
from argosy.gitops.status.hold import Hold, hold_text, read_hold
from argosy.gitops.status.operations import request_wire
from argosy.gitops.status.rollback import LEFT
from argosy.gitops.status.wire_format import mappings
from argosy.gitops.sync.rollback import rollback_request
from argosy.kube.client import Propagation
from argosy.kube.controller.wait import TooLate, until
from argosy.kube.objects import Manifest

FOREGROUND, BACKGROUND = "foreground", "background"
OURS: Final = (names.RESOURCES_FINALIZER,)
END_SECONDS: Final = 30.0  # timeout for a terminated sync


class AutoSyncOn(PolicyError):
    """argo: automated sync would undo the rollback immediately."""


async def refresh(
    desk: Desk, app: Application, *, is_hard: bool, seconds: float, tell: Tell | None = None
) -> Application:
    """Request a refresh and wait until the engine has taken it up; report if it takes long."""
    await ask_refresh(desk, app, is_hard=is_hard)
    last: list[Manifest | None] = [None]

    def is_taken_up(manifest: Manifest | None) -> bool:
        last[0] = manifest
        return manifest is None or names.REFRESH not in (manifest["metadata"].get("annotations") or {})

    patience = seconds or FOR_EVER
    is_done = await until(desk.cluster, app.key, is_taken_up, min(patience, UNHEARD))
    if not is_done and patience > UNHEARD:
        if tell:
            tell(f"{app.name}: no controller has taken up the refresh yet; is one running? argosy controller")
        is_done = await until(desk.cluster, app.key, is_taken_up, patience - UNHEARD)
    if not is_done:
        told = f"{app.name}: not refreshed within {seconds:g} s; is a controller running? argosy controller"
        raise TooLate(told)
    if last[0] is None:
        raise UserError(f"{app.name} was deleted in the meantime")
    return read_application(last[0])


async def ask_refresh(desk: Desk, app: Application, *, is_hard: bool) -> None:
    """Request a refresh; the engine carries it out."""
    at = datetime.now(UTC)

    def make(current: Application) -> dict[str, Any]:
        return {"metadata": {"annotations": refresh_asked(current.annotations, at, is_hard=is_hard)}}

    await desk.revise(app, make)
    await desk.record(events.refreshed(app, at=now(), by=await desk.who(), is_hard=is_hard))


async def hold(desk: Desk, app: Application, reason: str) -> tuple[Application, bool]:
    """Hold automated syncs; return the Application and whether anything changed."""
    before = read_hold(app.annotations)
    if before is not None and (not reason or reason == before.reason):
        return app, False
    made = Hold(reason, await desk.who(), now(), ", ".join(revisions(app)))
    after = await desk.revise(app, lambda _: _holding(made))
    await desk.record(events.held(app, made))
    return after, True


def _holding(hold: Hold) -> dict[str, Any]:
    return {"metadata": {"annotations": {names.HOLD: hold_text(hold)}}}


async def release(desk: Desk, app: Application) -> tuple[Application, bool]:
    if read_hold(app.annotations) is None:
        return app, False
    after = await desk.revise(app, lambda _: {"metadata": {"annotations": {names.HOLD: None}}})
    await desk.record(events.released(app, at=now(), by=await desk.who()))
    return after, True


def entry_to_roll_back_to(app: Application, number: int | None, *, is_compat: bool = False) -> Deployment:
    """Return the requested entry, or the latest that deployed other content than the current one."""
    entries = deployments(app.status)
    if number is None:
        if entries and not is_compat and _syncs_something_else(app, entries[-1]):
            return entries[-1]
        if len(entries) < 2:
            told = f"{app.name} has no earlier deployment to go back to; see: argosy app history {app.name}"
            raise UserError(told)
        others = [] if is_compat else [each for each in entries if not is_same_content(each, entries[-1])]
        return others[-1] if others else entries[-2]  # argo: the entry before the last, whatever its content
    for entry in entries:
        if entry.id == number:
            return entry
    raise _no_deployment(app, number)


def _find_history_entry(app: Application, number: int) -> Mapping[str, Any]:
    """Return an entry of `status.history` as it is written. Raises UserError."""
    for entry, deployment in zip(mappings(app.status.get("history")), deployments(app.status)):
        if deployment.id == number:
            return entry
    raise _no_deployment(app, number)


def _no_deployment(app: Application, number: int) -> UserError:
    known = ", ".join(str(entry.id) for entry in deployments(app.status)) or "none"
    return UserError(f"{app.name} has no deployment {number} in its history; existing ones: {known}")


def is_same_content(one: Deployment, other: Deployment) -> bool:
    return (one.revisions, one.sources) == (other.revisions, other.sources)


def is_deployed_already(app: Application, entry: Deployment) -> bool:
    """True if a rollback to this entry changes nothing from Git."""
    last = deployments(app.status)[-1]
    return is_same_content(entry, last) and not _syncs_something_else(app, last)


def _syncs_something_else(app: Application, entry: Deployment) -> bool:
    """True if a sync runs that has begun to deploy something else than an entry of the history."""
    state = app.state
    if state is None or state.progress.is_over or not state.has_result or state.request.sync.dry_run:
        return False
    revisions = state.revisions or (state.revision,)
    return (revisions, tuple(state.sources)) != (entry.revisions, tuple(entry.sources))


def syncs_itself(app: Application) -> bool:
    """True if automated sync would undo a rollback: it is on and not held."""
    automated = app.policy.automated
    return automated is not None and automated.is_on and read_hold(app.annotations) is None


async def roll_back(
    desk: Desk,
    app: Application,
    entry: Deployment,
    *,
    prune: bool,
    hold_reason: str | None,
    dry_run: bool = False,
    tell: Tell | None = None,
) -> Application:
    """Request a rollback, with a hold in the same write if given; terminate a stuck sync first."""
    by = await desk.who()
    # Before any write: the entry may be invalid, and may leave the history while a sync ends.
    history_entry = _find_history_entry(app, entry.id)
    request = rollback_request(history_entry, by=by, prune=prune, dry_run=dry_run, options=app.policy.options)
    if not dry_run and (hold_reason is not None or not syncs_itself(app)):
        app = await _end_stuck_sync(desk, app, hold_reason, tell)
    made = Hold(hold_reason or f"rolled back to {entry.id}", by, now(), ", ".join(entry.revisions))

    def make(current: Application) -> dict[str, Any]:
        check_free(current)
        if syncs_itself(current) and hold_reason is None:
            raise AutoSyncOn(
                f"{app.name}: rollback cannot be initiated when auto-sync is enabled; "
                f"hold it at the same time: argosy app rollback {app.name} {entry.id} --hold"
            )
        left = {"info": [{"name": LEFT, "value": health_word(current)}]}  # the only record of this health
        patch: dict[str, Any] = {"operation": {**request.wire, **left}}
        return {**patch, **_holding(made)} if hold_reason is not None else patch

    before = read_hold(app.annotations)
    after = await desk.revise(app, make)
    if hold_reason is not None and (before is None or before.reason != made.reason):
        await desk.record(events.held(app, made))
    told = events.rolled_back(app, at=now(), to=entry.id, revision=", ".join(entry.revisions), by=by)
    await desk.record(told)
    return after


async def _end_stuck_sync(desk: Desk, app: Application, hold_reason: str | None, tell: Tell | None) -> Application:
    """Terminate a sync that cannot succeed, and wait until it is over; leave one alone that may succeed."""
    if app.deleted or not (why := await find_stuck_reason(desk, app)):
        return app
    if hold_reason is not None:  # hold first, else an automated sync could start right after
        app, _ = await hold(desk, app, hold_reason)
    if tell is not None:
        tell(f"{app.name}: terminating the running sync, because it cannot succeed: {why}")
    with contextlib.suppress(UserError):  # it just ended by itself
        await terminate(desk, app)
    last: list[Manifest | None] = [None]

    def is_free(manifest: Manifest | None) -> bool:
        last[0] = manifest
        return manifest is None or not is_busy(read_application(manifest))

    if not await until(desk.cluster, app.key, is_free, END_SECONDS):
        advice = f"is a controller running? argosy controller; then try again: argosy app rollback {app.name}"
        raise TooLate(f"{app.name}: the running sync did not end within {END_SECONDS:g} s; {advice}")
    if last[0] is None:
        raise UserError(f"{app.name} was deleted in the meantime")
    return read_application(last[0])


async def terminate(desk: Desk, app: Application) -> Application:
    def make(current: Application) -> dict[str, Any]:
        if not is_busy(current):
            told = f"no operation is in progress; see: argosy app get {app.name}"
            raise UserError(f"{app.name}: unable to terminate operation: {told}")
        if current.state is None or current.state.progress.is_over:
            return {"operation": None}  # not started yet
        patch: dict[str, Any] = {"status": {"operationState": {"phase": "Terminating"}}}
        if current.operation is None:  # removed by a user; Argo CD ignores an operationState without it
            patch["operation"] = request_wire(current.state.request)
        return patch

    after = await desk.revise(app, make)
    by = await desk.who()
    told = f"{by or events.NOBODY} terminated running operation"
    await desk.record(events.event(app, Reason.OPERATION_COMPLETED, told, at=now(), by=by))
    return after


async def confirm_deletion(desk: Desk, app: Application, seen: str | None = None) -> Application:
    """Approve pending deletions. `seen_since`: the start time that the user saw; None: the current one."""
    at, by = now(), await desk.who()
    since = deletes_since(app) if seen is None else seen

    def make(current: Application) -> dict[str, Any]:
        if deletes_since(current) != since:
            told = "that operation is over, and the current one may delete other objects; nothing was confirmed"
            raise UserError(f"{app.name}: {told}; check again: argosy app get {app.name}")
        # Use the operation's own time: later operations need a new approval, and only the cluster's clock counts.
        return {"metadata": {"annotations": {names.DELETION_APPROVED: since or at}}}

    after = await desk.revise(app, make)
    told = f"{by or events.NOBODY} confirmed the deletion of resources"
    await desk.record(events.event(app, Reason.RESOURCE_UPDATED, told, at=at, by=by))
    return after


async def delete(desk: Desk, app: Application, *, cascades: bool, policy: str = FOREGROUND) -> None:
    """argo: delete with its managed objects if `cascades`; else they stay."""
    wanted = [BACKGROUND_FINALIZER if policy == BACKGROUND else names.RESOURCES_FINALIZER] if cascades else []

    def make(current: Application) -> dict[str, Any] | None:
        others = [each for each in current.finalizers if not each.startswith(OURS)]
        kept = [*others, *wanted]
        return None if tuple(kept) == current.finalizers else {"metadata": {"finalizers": kept}}

    fresh = app if app.deleted else await desk.revise(app, make)
    by = await desk.who()
    await desk.record(events.deleted(fresh, at=now(), by=by))
    await desk.cluster.delete(app.key, propagation=Propagation.BACKGROUND, uid=app.uid or None)
