"""Builds the placeholder Pod that represents a local run, so that `status.validationPodName` refers to an existing Pod.

In: the status of a job. Out: the Pod with a matching status. Never: runs anything in the Pod: it has no Node, so that
it uses no capacity; contains a secret: the job status has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.annotations import NOTEBOOK_RUN, SIMULATED
from argosy.features.notebooks import deadlines
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.log_lines import cell_lines, ending
from argosy.features.notebooks.pod_runs import objects
from argosy.features.notebooks.pod_runs.pod import RESTRICTED, VALIDATOR
from argosy.features.notebooks.run_backend import pod_name
from argosy.features.notebooks.statuses import SUCCEEDED, Status
from argosy.kube.objects import Manifest, annotation

BY: Final = "notebooks"  # marks our Pods, so that no simulator handles them
ABOUT: Final = "the notebook runs as a confined local process, not in this Pod (argosy)"
ENDED: Final = ("Succeeded", "Failed")

Fields = dict[str, Any]


def is_ours(pod: Manifest) -> bool:
    return annotation(pod, SIMULATED) == BY


def run_of(job: Manifest) -> str:
    """Id of the run that the job status is about; the prefix differs from runs in Pods, which ignore other ids."""
    last = deadlines.attempt(job.get("status") or {}) or {}
    return f"local-{job['metadata']['uid'][:8]}-{last.get('generation') or 1}-{last.get('number') or 1}"


def pod_of(job: Job, live: Manifest) -> Manifest | None:
    """None if no run has started, or the last run was of an earlier spec."""
    if not (live.get("status") or {}).get("validationPodName"):
        return None
    container = {"name": VALIDATOR, "image": job.image, "resources": dict(job.resources), "securityContext": RESTRICTED}
    metadata = {
        "name": pod_name(job.name), "namespace": job.namespace, "labels": objects.labels(job),
        "annotations": {NOTEBOOK_RUN: run_of(live), SIMULATED: BY}, "ownerReferences": [objects.owner(job)],
    }  # fmt: skip
    spec = {
        "restartPolicy": "Never", "containers": [container],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def status_of(status: Status, image: str) -> Fields:
    """Pod status as a kubelet would report it for the last attempt."""
    last = deadlines.attempt(status) or {}
    began, done = last.get("startTime"), last.get("completionTime")
    if done:
        is_good = last.get("phase") == SUCCEEDED
        phase, state = ENDED[not is_good], _terminated(last, is_good)
    elif began:
        phase, state = "Running", {"running": {"startedAt": began}}
    else:
        phase, state = "Pending", {"waiting": {"reason": "ContainerCreating"}}
    is_ready = phase == "Running"
    container = {
        "name": VALIDATOR, "image": image, "imageID": "", "ready": is_ready, "started": is_ready, "restartCount": 0,
        "state": state,
    }  # fmt: skip
    since = done or began
    ready = {"status": "True" if is_ready else "False", **({"lastTransitionTime": since} if since else {})}
    conditions = [{"type": name, **ready} for name in ("ContainersReady", "Ready")]
    found: Fields = {"phase": phase, "message": ABOUT, "conditions": conditions, "containerStatuses": [container]}
    return {**found, "startTime": began} if began else found


def _terminated(attempt: Mapping[str, Any], is_good: bool) -> Fields:
    done = attempt["completionTime"]
    found = {
        "exitCode": 0 if is_good else 1, "reason": "Completed" if is_good else "Error",
        "startedAt": attempt.get("startTime") or done, "finishedAt": done,
    }  # fmt: skip
    return {"terminated": {**found, **({"message": attempt["message"]} if attempt.get("message") else {})}}


def lines_of(status: Status) -> tuple[list[str], bool]:
    """Log lines so far, and True if the run has ended; then the last line is its result."""
    told = [line for each in status.get("results") or () for line in cell_lines(each)]
    last = deadlines.attempt(status) or {}
    return ([*told, ending(last)], True) if last.get("completionTime") else (told, False)
