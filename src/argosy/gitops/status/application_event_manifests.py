"""Builds Events about an Application.

In: an Application, what happened, who did it, when. Out: Event manifests. Never: two names for the same event, so that
a repeated one after a crash is recognized.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from argosy.gitops.application import Application, OperationPhase, OperationState
from argosy.gitops.status.status_json_conversions import as_mapping, omit_empty
from argosy.gitops.status.sync_hold_annotation import SyncHold
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import ARGOPROJ_API_VERSION

EVENT_COMPONENT: Final = "argocd-application-controller"  # argo: the same component, because users filter by it
MAX_MESSAGE_LENGTH: Final = 1024  # k8s: characters of a message
MAX_NAME_LENGTH: Final = 253
UNKNOWN_USER: Final = "Unknown user"  # argo: if the user is unknown


class EventReason(enum.StrEnum):
    """argo: all reasons of Argo CD."""

    STATUS_REFRESHED = "StatusRefreshed"
    RESOURCE_CREATED = "ResourceCreated"
    RESOURCE_UPDATED = "ResourceUpdated"
    RESOURCE_DELETED = "ResourceDeleted"
    RESOURCE_ACTION_RAN = "ResourceActionRan"
    OPERATION_STARTED = "OperationStarted"
    OPERATION_COMPLETED = "OperationCompleted"


ALL_EVENT_REASONS: Final[frozenset[str]] = frozenset(EventReason)


def build_event(
    app: Application,
    reason: EventReason,
    message: str,
    *,
    timestamp: str,
    username: str = "",
    is_warning: bool = False,
    occurrence: str = "",
) -> Manifest:
    """Build an Event whose name is a hash of its content and `occurrence`.

    `occurrence` tells apart Events with the same content. It defaults to `timestamp`, so a caller whose pass may be
    repeated at another time gives one that stays the same until the result of the pass is written.
    """
    identity = "\n".join((app.uid, app.namespace, app.name, reason, message, occurrence or timestamp, username))
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    metadata = as_mapping(app.wire.get("metadata"))
    involved_object = {
        "apiVersion": ARGOPROJ_API_VERSION,
        "kind": "Application",
        "name": app.name,
        "namespace": app.namespace,
    }
    involved_object |= omit_empty(uid=app.uid, resourceVersion=metadata.get("resourceVersion"))
    annotations = {
        "dest-server": app.destination.server,
        "dest-namespace": app.destination.namespace,
        **omit_empty(user=username),
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{app.name[: MAX_NAME_LENGTH - 17]}.{digest}",
            "namespace": app.namespace,
            "annotations": annotations,
        },
        "involvedObject": involved_object,
        "reason": reason.value,
        "message": message if len(message) <= MAX_MESSAGE_LENGTH else message[: MAX_MESSAGE_LENGTH - 2] + " …",
        "type": "Warning" if is_warning else "Normal",
        "source": {"component": EVENT_COMPONENT},
        "firstTimestamp": timestamp,
        "lastTimestamp": timestamp,
        "count": 1,
    }


def status_change_events(app: Application, new_status: Mapping[str, Any], *, timestamp: str) -> tuple[Manifest, ...]:
    """Build one Event for a changed sync status and one for a changed health status."""
    occurrence = f"since {app.status.get('reconciledAt')}"  # written together with each change of these statuses
    events = []
    for name in ("sync", "health"):
        old, new = (str(as_mapping(status.get(name)).get("status") or "") for status in (app.status, new_status))
        if old != new:
            message = f"Updated {name} status: {old} -> {new}"
            reason = EventReason.RESOURCE_UPDATED
            events.append(build_event(app, reason, message, timestamp=timestamp, occurrence=occurrence))
    return tuple(events)


def operation_started_event(app: Application, state: OperationState) -> Manifest:
    request = state.request
    revision = _format_revision(state) or "the newest revision"
    if request.is_automated:
        message = f"Initiated automated sync to '{revision}'"
    else:
        prefix = "partial " if request.sync.resources else ""
        target = "locally" if request.sync.manifests else f"to {revision}"
        message = f"{request.username or UNKNOWN_USER} initiated {prefix}sync {target}"
    return build_event(
        app,
        EventReason.OPERATION_STARTED,
        message,
        timestamp=state.started,
        username=request.username,
        occurrence=_identify_written_operation(app),
    )


def operation_completed_event(app: Application, state: OperationState) -> Manifest:
    subject = "Partial sync operation" if state.request.sync.resources else "Sync operation"
    target = f" to {_format_revision(state)}" if state.has_result else ""  # argo: also if the revision is not known
    succeeded = state.phase is OperationPhase.SUCCEEDED
    outcome = "succeeded" if succeeded else f"failed: {state.message}"
    return build_event(
        app,
        EventReason.OPERATION_COMPLETED,
        f"{subject}{target} {outcome}",
        timestamp=state.finished,
        username=state.request.username,
        is_warning=not succeeded,
        occurrence=_identify_written_operation(app),
    )


def _identify_written_operation(app: Application) -> str:
    """Name the operation in the status as it was read: a repeated pass has other times for the new state."""
    if app.state is None:
        return "first operation"
    return f"{'after' if app.state.phase.is_over else 'during'} the operation of {app.state.started}"


def refresh_requested_event(app: Application, *, timestamp: str, username: str = "", is_hard: bool = False) -> Manifest:
    message = (
        f"{username or UNKNOWN_USER} asked for a {'hard ' if is_hard else ''}refresh{_format_compared_revision(app)}"
    )
    return build_event(app, EventReason.STATUS_REFRESHED, message, timestamp=timestamp, username=username)


def sync_held_event(app: Application, hold: SyncHold) -> Manifest:
    revision_text = f" at {hold.revision}" if hold.revision else ""
    reason_text = f": {hold.reason}" if hold.reason else ""
    message = f"{hold.by or UNKNOWN_USER} held automated sync{revision_text}{reason_text}"
    return build_event(app, EventReason.RESOURCE_UPDATED, message, timestamp=hold.at, username=hold.by)


def sync_released_event(app: Application, *, timestamp: str, username: str = "") -> Manifest:
    return build_event(
        app,
        EventReason.RESOURCE_UPDATED,
        f"{username or UNKNOWN_USER} released automated sync{_format_compared_revision(app)}",
        timestamp=timestamp,
        username=username,
    )


def rollback_event(app: Application, *, timestamp: str, history_id: int, revision: str, username: str = "") -> Manifest:
    message = f"{username or UNKNOWN_USER} initiated rollback to {history_id} ({revision})"
    return build_event(app, EventReason.OPERATION_STARTED, message, timestamp=timestamp, username=username)


def deletion_requested_event(app: Application, *, timestamp: str, username: str = "") -> Manifest:
    return build_event(
        app,
        EventReason.RESOURCE_DELETED,
        f"{username or UNKNOWN_USER} deleted application{_format_compared_revision(app)}",
        timestamp=timestamp,
        username=username,
    )


def deletion_completed_event(app: Application) -> Manifest:
    """Build the Event of a completed deletion; the user is not known at this point."""
    return build_event(
        app,
        EventReason.RESOURCE_DELETED,
        f"deleted application and its resources{_format_compared_revision(app)}",
        timestamp=app.deletion_timestamp,
    )


def _format_compared_revision(app: Application) -> str:
    """Return the revision that the Application was compared with at the time."""
    sync = as_mapping(app.status.get("sync"))
    many = sync.get("revisions")
    revisions = [
        str(revision) for revision in (many if isinstance(many, list) and many else [sync.get("revision")]) if revision
    ]
    return f" at {', '.join(revisions)}" if revisions else ""


def _format_revision(state: OperationState) -> str:
    sync = state.request.sync
    return ", ".join(state.revisions) or state.revision or ", ".join(sync.revisions) or sync.revision
