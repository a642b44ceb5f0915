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
from argosy.features.notebooks import deadlines, durations
from argosy.features.notebooks.job import API_VERSION, KIND, Job
from argosy.features.notebooks.redaction import redact
from argosy.features.notebooks.statuses import BUILDING, BUILT, FAILED, RUNNING, SUCCEEDED, Status, undeclared
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import written

COMPONENT: Final = "jupyter-notebook-validator-operator"
LONGEST: Final = 1024  # k8s: characters of a message
LONGEST_NAME: Final = 253


@dataclass(frozen=True)
class Happening:
    reason: str
    message: str
    mark: str  # distinguishes it from the same event of another run
    is_warning: bool = False
    kind: str = ""  # type of a notification: validation-success or validation-failure


def happenings(job: Job, before: Status, after: Status) -> Iterator[Happening]:
    """Events for the change from one status to the next."""
    was, now = before.get("phase"), after.get("phase")
    last, earlier = deadlines.attempt(after) or {}, deadlines.attempt(before) or {}
    mark = f"{job.generation}.{last.get('number', 0)}.{after.get('startTime', '')}"
    if was != now and now == BUILDING:
        yield Happening("BuildStarted", f"building an image with {after['buildStatus'].get('strategy')}", mark)
    if was != now and now == BUILT:
        yield Happening("BuildComplete", f"built {after['buildStatus'].get('imageReference')}", mark)
    if last.get("startTime") and not earlier.get("startTime") and last.get("number") == earlier.get("number"):
        where = f" at {last['gitCommit']}" if last.get("gitCommit") else ""
        yield Happening("ValidationStarted", f"attempt {last.get('number')}: {job.notebook.path}{where}", mark)
    if int(after.get("retryCount") or 0) > int(before.get("retryCount") or 0) and now == RUNNING:
        yield Happening("ValidationRetrying", str(after.get("message")), mark, is_warning=True)
    if was != now and now in (SUCCEEDED, FAILED):
        yield from ended(job, after, mark)


def ended(job: Job, status: Status, mark: str = "") -> Iterator[Happening]:
    last = deadlines.attempt(status) or {}
    mark = mark or f"{job.generation}.{last.get('number', 0)}.{status.get('startTime', '')}"
    good = status.get("phase") == SUCCEEDED
    build = status.get("buildStatus") or {}
    if build.get("phase") == "Failed":
        yield Happening("BuildFailed", str(build.get("message")), mark, is_warning=True)
    for each in undeclared(status):
        yield Happening("SpecWarning", f"spec.parameters: {each}", f"{mark}.{each}", is_warning=True)
    reason = "ValidationSucceeded" if good else "ValidationFailed"
    kind = "validation-success" if good else "validation-failure"
    yield Happening(reason, _story(job, status, reason), mark, is_warning=not good, kind=kind)


def _story(job: Job, status: Status, reason: str) -> str:
    """The lines that the original operator writes, and a few more."""
    began, done = deadlines.moment(status.get("startTime")), deadlines.moment(status.get("completionTime"))
    seconds = (done - began).total_seconds() if began and done else 0.0
    lines = {
        "Message": status.get("message"),
        "Notebook": job.notebook.path,
        "Commit": status.get("gitCommit"),
        "Sync Wave": job.annotations.get(SYNC_WAVE),
        "Application": job.labels.get(PART_OF),
        "Retries": status.get("retryCount"),
        "Duration": durations.written(seconds),
        "Timestamp": status.get("completionTime"),
        "Namespace": job.namespace,
    }
    head = f"{job.name}: {reason}: {status.get('message')}"  # tables show only the first line
    return "\n".join([head, *(f"{name}: {value}" for name, value in lines.items() if value)])


def event(job: Job, live: Manifest, happening: Happening, now: datetime) -> Manifest:
    """k8s: an Event is in the namespace of the object that it is about."""
    digest = hashlib.sha256(f"{job.uid}/{happening.reason}/{happening.mark}".encode()).hexdigest()[:16]
    labels = {NOTIFICATION_TYPE: happening.kind} if happening.kind else {}
    if labels and job.labels.get(PART_OF):
        labels[PART_OF] = job.labels[PART_OF]
    involved = {
        "apiVersion": API_VERSION, "kind": KIND.kind, "namespace": job.namespace, "name": job.name, "uid": job.uid,
        "resourceVersion": live["metadata"].get("resourceVersion", ""),
    }  # fmt: skip
    message = redact(happening.message)
    found: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{job.name[: LONGEST_NAME - 17]}.{digest}", "namespace": job.namespace, "labels": labels},
        "involvedObject": involved,
        "reason": happening.reason,
        "message": message if len(message) <= LONGEST else message[: LONGEST - 2] + " …",
        "type": "Warning" if happening.is_warning else "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": written(now),
        "lastTimestamp": written(now),
        "count": 1,
    }
    return found


async def tell(job: Job, live: Manifest, happening: Happening, cluster: Cluster, now: datetime) -> bool:
    """Write an Event; True if it did not exist. An Event that cannot be written is lost, as in Kubernetes."""
    try:
        await cluster.create(event(job, live, happening, now))
    except ArgosyError:
        return False
    return True
