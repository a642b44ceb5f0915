"""Kubernetes Events of a notebook job.

In: the status of a job before and after a step. Out: Events, each written once: the name is derived from run and
reason, so that a retry or another process writes the same Event. Never: blocks the controller.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from argosy.annotations import NOTIFICATION_TYPE, PART_OF, SYNC_WAVE
from argosy.errors import ArgosyError
from argosy.features.notebooks import deadlines, go_durations
from argosy.features.notebooks.notebook_validation_job_parser import API_VERSION, NotebookJob
from argosy.features.notebooks.notebook_validation_job_status import (
    BUILD_COMPLETE,
    BUILDING,
    FAILED,
    RUNNING,
    SUCCEEDED,
    Status,
    list_undeclared_remarks,
)
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.well_known_kinds import NOTEBOOK_JOB
from argosy.observability.redaction.text_redaction import redact

COMPONENT: Final = "jupyter-notebook-validator-operator"
MAX_MESSAGE_CHARACTERS: Final = 1024  # k8s: characters of a message
MAX_NAME_CHARACTERS: Final = 253


@dataclass(frozen=True)
class JobEvent:
    reason: str
    message: str
    mark: str  # distinguishes it from the same event of another run
    is_warning: bool = False
    notification_type: str = ""  # type of a notification: validation-success or validation-failure


def list_step_events(job: NotebookJob, before: Status, after: Status) -> Iterator[JobEvent]:
    """Events for the change from one status to the next."""
    old_phase, new_phase = before.get("phase"), after.get("phase")
    last_attempt, previous_attempt = deadlines.get_last_attempt(after) or {}, deadlines.get_last_attempt(before) or {}
    mark = f"{job.generation}.{last_attempt.get('number', 0)}.{after.get('startTime', '')}"
    if old_phase != new_phase and new_phase == BUILDING:
        yield JobEvent("BuildStarted", f"building an image with {after['buildStatus'].get('strategy')}", mark)
    if old_phase != new_phase and new_phase == BUILD_COMPLETE:
        yield JobEvent("BuildComplete", f"built {after['buildStatus'].get('imageReference')}", mark)
    if (
        last_attempt.get("startTime")
        and not previous_attempt.get("startTime")
        and last_attempt.get("number") == previous_attempt.get("number")
    ):
        commit_text = f" at {last_attempt['gitCommit']}" if last_attempt.get("gitCommit") else ""
        yield JobEvent(
            "ValidationStarted", f"attempt {last_attempt.get('number')}: {job.notebook.path}{commit_text}", mark
        )
    if int(after.get("retryCount") or 0) > int(before.get("retryCount") or 0) and new_phase == RUNNING:
        yield JobEvent("ValidationRetrying", str(after.get("message")), mark, is_warning=True)
    if old_phase != new_phase and new_phase in (SUCCEEDED, FAILED):
        yield from list_result_events(job, after, mark)


def list_result_events(job: NotebookJob, status: Status, mark: str = "") -> Iterator[JobEvent]:
    last_attempt = deadlines.get_last_attempt(status) or {}
    mark = mark or f"{job.generation}.{last_attempt.get('number', 0)}.{status.get('startTime', '')}"
    has_succeeded = status.get("phase") == SUCCEEDED
    build = status.get("buildStatus") or {}
    if build.get("phase") == "Failed":
        yield JobEvent("BuildFailed", str(build.get("message")), mark, is_warning=True)
    for remark in list_undeclared_remarks(status):
        yield JobEvent("SpecWarning", f"spec.parameters: {remark}", f"{mark}.{remark}", is_warning=True)
    reason = "ValidationSucceeded" if has_succeeded else "ValidationFailed"
    kind = "validation-success" if has_succeeded else "validation-failure"
    yield JobEvent(
        reason, _build_result_message(job, status, reason), mark, is_warning=not has_succeeded, notification_type=kind
    )


def _build_result_message(job: NotebookJob, status: Status, reason: str) -> str:
    """The lines that the original operator writes, and a few more."""
    started_at, completed_at = (
        deadlines.parse_time(status.get("startTime")),
        deadlines.parse_time(status.get("completionTime")),
    )
    seconds = (completed_at - started_at).total_seconds() if started_at and completed_at else 0.0
    lines = {
        "Message": status.get("message"),
        "Notebook": job.notebook.path,
        "Commit": status.get("gitCommit"),
        "Sync Wave": job.annotations.get(SYNC_WAVE),
        "Application": job.labels.get(PART_OF),
        "Retries": status.get("retryCount"),
        "Duration": go_durations.format_duration(seconds),
        "Timestamp": status.get("completionTime"),
        "Namespace": job.namespace,
    }
    first_line = f"{job.name}: {reason}: {status.get('message')}"  # tables show only the first line
    return "\n".join([first_line, *(f"{name}: {value}" for name, value in lines.items() if value)])


def build_event(job: NotebookJob, live: Manifest, draft: JobEvent, now: datetime) -> Manifest:
    """k8s: an Event is in the namespace of the object that it is about."""
    digest = hashlib.sha256(f"{job.uid}/{draft.reason}/{draft.mark}".encode()).hexdigest()[:16]
    labels = {NOTIFICATION_TYPE: draft.notification_type} if draft.notification_type else {}
    if labels and job.labels.get(PART_OF):
        labels[PART_OF] = job.labels[PART_OF]
    involved_object = {
        "apiVersion": API_VERSION, "kind": NOTEBOOK_JOB.kind, "namespace": job.namespace, "name": job.name,
        "uid": job.uid, "resourceVersion": live["metadata"].get("resourceVersion", ""),
    }  # fmt: skip
    message = redact(draft.message)
    manifest: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{job.name[: MAX_NAME_CHARACTERS - 17]}.{digest}",
            "namespace": job.namespace,
            "labels": labels,
        },
        "involvedObject": involved_object,
        "reason": draft.reason,
        "message": message if len(message) <= MAX_MESSAGE_CHARACTERS else message[: MAX_MESSAGE_CHARACTERS - 2] + " …",
        "type": "Warning" if draft.is_warning else "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": format_timestamp(now),
        "lastTimestamp": format_timestamp(now),
        "count": 1,
    }
    return manifest


async def write_event(job: NotebookJob, live: Manifest, draft: JobEvent, cluster: Cluster, now: datetime) -> bool:
    """Write an Event; True if it did not exist. An Event that cannot be written is lost, as in Kubernetes."""
    try:
        await cluster.create(build_event(job, live, draft, now))
    except ArgosyError:
        return False
    return True
