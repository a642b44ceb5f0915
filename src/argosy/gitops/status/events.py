"""Builds Events about an Application.

In: an Application, what happened, who did it, when. Out: Event manifests. Never: two names for the same event, so that
a repeated one after a crash is recognized.
"""

from __future__ import annotations

import enum
import hashlib
from typing import Final

from argosy.gitops.application import Application, OperationState, Progress
from argosy.gitops.status.hold import Hold
from argosy.gitops.status.wire_format import given, mapping
from argosy.kube.objects import Manifest

COMPONENT: Final = "argocd-application-controller"  # argo: the same component, because users filter by it
LONGEST: Final = 1024  # k8s: characters of a message
LONGEST_NAME: Final = 253
NOBODY: Final = "Unknown user"  # argo: if the user is unknown


class Reason(enum.StrEnum):
    """argo: all reasons of Argo CD."""

    STATUS_REFRESHED = "StatusRefreshed"
    RESOURCE_CREATED = "ResourceCreated"
    RESOURCE_UPDATED = "ResourceUpdated"
    RESOURCE_DELETED = "ResourceDeleted"
    RESOURCE_ACTION_RAN = "ResourceActionRan"
    OPERATION_STARTED = "OperationStarted"
    OPERATION_COMPLETED = "OperationCompleted"


def event(
    app: Application, reason: Reason, message: str, *, at: str, by: str = "", is_warning: bool = False
) -> Manifest:
    """Build an Event; the same content at the same time about the same Application gives the same name."""
    told = "\n".join((app.uid, app.namespace, app.name, reason, message, at, by))
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    metadata = mapping(app.wire.get("metadata"))
    about = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "name": app.name, "namespace": app.namespace}
    about |= given(uid=app.uid, resourceVersion=metadata.get("resourceVersion"))
    marks = {"dest-server": app.destination.server, "dest-namespace": app.destination.namespace, **given(user=by)}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{app.name[: LONGEST_NAME - 17]}.{digest}",
            "namespace": app.namespace,
            "annotations": marks,
        },
        "involvedObject": about,
        "reason": reason.value,
        "message": message if len(message) <= LONGEST else message[: LONGEST - 2] + " …",
        "type": "Warning" if is_warning else "Normal",
        "source": {"component": COMPONENT},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def started(app: Application, state: OperationState) -> Manifest:
    request = state.request
    which = _revision(state) or "the newest revision"
    if request.is_automated:
        message = f"Initiated automated sync to '{which}'"
    else:
        parts = "partial " if request.sync.resources else ""
        message = f"{request.by or NOBODY} initiated {parts}sync to {which}"
    return event(app, Reason.OPERATION_STARTED, message, at=state.started, by=request.by)


def completed(app: Application, state: OperationState) -> Manifest:
    what = "Partial sync operation" if state.request.sync.resources else "Sync operation"
    which = f" to {_revision(state)}" if state.has_result else ""
    succeeded = state.progress is Progress.SUCCEEDED
    outcome = "succeeded" if succeeded else f"failed: {state.message}"
    return event(
        app,
        Reason.OPERATION_COMPLETED,
        f"{what}{which} {outcome}",
        at=state.finished,
        by=state.request.by,
        is_warning=not succeeded,
    )


def refreshed(app: Application, *, at: str, by: str = "", is_hard: bool = False) -> Manifest:
    asked = f"{by or NOBODY} asked for a {'hard ' if is_hard else ''}refresh{_where(app)}"
    return event(app, Reason.STATUS_REFRESHED, asked, at=at, by=by)


def held(app: Application, hold: Hold) -> Manifest:
    which = f" at {hold.revision}" if hold.revision else ""
    why = f": {hold.reason}" if hold.reason else ""
    message = f"{hold.by or NOBODY} held automated sync{which}{why}"
    return event(app, Reason.RESOURCE_UPDATED, message, at=hold.at, by=hold.by)


def released(app: Application, *, at: str, by: str = "") -> Manifest:
    return event(app, Reason.RESOURCE_UPDATED, f"{by or NOBODY} released automated sync{_where(app)}", at=at, by=by)


def rolled_back(app: Application, *, at: str, to: int, revision: str, by: str = "") -> Manifest:
    message = f"{by or NOBODY} initiated rollback to {to} ({revision})"
    return event(app, Reason.OPERATION_STARTED, message, at=at, by=by)


def deleted(app: Application, *, at: str, by: str = "") -> Manifest:
    return event(app, Reason.RESOURCE_DELETED, f"{by or NOBODY} deleted application{_where(app)}", at=at, by=by)


def gone(app: Application) -> Manifest:
    """Build the Event of a completed deletion; the user is not known at this point."""
    return event(app, Reason.RESOURCE_DELETED, f"deleted application and its resources{_where(app)}", at=app.deleted)


def _where(app: Application) -> str:
    """Return the revision that the Application was compared with at the time."""
    sync = mapping(app.status.get("sync"))
    many = sync.get("revisions")
    found = [str(each) for each in (many if isinstance(many, list) and many else [sync.get("revision")]) if each]
    return f" at {', '.join(found)}" if found else ""


def _revision(state: OperationState) -> str:
    sync = state.request.sync
    return ", ".join(state.revisions) or state.revision or ", ".join(sync.revisions) or sync.revision
