"""Builds the placeholder Pod that represents a local run, so that `status.validationPodName` refers to an existing Pod.

In: the status of a job. Out: the Pod with a matching status. Never: runs anything in the Pod: it has no Node, so that
it uses no capacity; contains a secret: the job status has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.annotations import NOTEBOOK_RUN, SIMULATED
from argosy.features.notebooks import deadlines
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.notebook_validation_job_status import SUCCEEDED, Status
from argosy.features.notebooks.pod_runs import object_metadata
from argosy.features.notebooks.pod_runs.validation_pod_manifest import RESTRICTED_SECURITY_CONTEXT, VALIDATOR_CONTAINER
from argosy.features.notebooks.run_backend import build_pod_name
from argosy.features.notebooks.run_result_log_formatter import format_cell_result, format_result
from argosy.kube.objects import Manifest, get_annotation

SIMULATOR_MARK: Final = "notebooks"  # marks our Pods, so that no simulator handles them
STATUS_MESSAGE: Final = "the notebook runs as a confined local process, not in this Pod (argosy)"
TERMINAL_PHASES: Final = ("Succeeded", "Failed")

Fields = dict[str, Any]


def is_placeholder_pod(pod: Manifest) -> bool:
    return get_annotation(pod, SIMULATED) == SIMULATOR_MARK


def build_run_id(job: Manifest) -> str:
    """Id of the run that the job status is about; the prefix differs from runs in Pods, which ignore other ids."""
    last_attempt = deadlines.get_last_attempt(job.get("status") or {}) or {}
    return f"local-{job['metadata']['uid'][:8]}-{last_attempt.get('generation') or 1}-{last_attempt.get('number') or 1}"


def build_pod(job: NotebookJob, live: Manifest) -> Manifest | None:
    """None if no run has started, or the last run was of an earlier spec."""
    if not (live.get("status") or {}).get("validationPodName"):
        return None
    container = {
        "name": VALIDATOR_CONTAINER,
        "image": job.image,
        "resources": dict(job.resources),
        "securityContext": RESTRICTED_SECURITY_CONTEXT,
    }
    metadata = {
        "name": build_pod_name(job.name),
        "namespace": job.namespace,
        "labels": object_metadata.build_labels(job),
        "annotations": {NOTEBOOK_RUN: build_run_id(live), SIMULATED: SIMULATOR_MARK},
        "ownerReferences": [object_metadata.build_owner_reference(job)],
    }
    spec = {
        "restartPolicy": "Never", "containers": [container],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def build_status(status: Status, image: str) -> Fields:
    """Pod status as a kubelet would report it for the last attempt."""
    last_attempt = deadlines.get_last_attempt(status) or {}
    started_at, completed_at = last_attempt.get("startTime"), last_attempt.get("completionTime")
    if completed_at:
        has_succeeded = last_attempt.get("phase") == SUCCEEDED
        phase, state = TERMINAL_PHASES[not has_succeeded], _build_terminated_state(last_attempt, has_succeeded)
    elif started_at:
        phase, state = "Running", {"running": {"startedAt": started_at}}
    else:
        phase, state = "Pending", {"waiting": {"reason": "ContainerCreating"}}
    is_ready = phase == "Running"
    container = {
        "name": VALIDATOR_CONTAINER,
        "image": image,
        "imageID": "",
        "ready": is_ready,
        "started": is_ready,
        "restartCount": 0,
        "state": state,
    }
    changed_at = completed_at or started_at
    ready = {"status": "True" if is_ready else "False", **({"lastTransitionTime": changed_at} if changed_at else {})}
    conditions = [{"type": name, **ready} for name in ("ContainersReady", "Ready")]
    status_fields: Fields = {
        "phase": phase,
        "message": STATUS_MESSAGE,
        "conditions": conditions,
        "containerStatuses": [container],
    }
    return {**status_fields, "startTime": started_at} if started_at else status_fields


def _build_terminated_state(attempt: Mapping[str, Any], has_succeeded: bool) -> Fields:
    completed_at = attempt["completionTime"]
    fields = {
        "exitCode": 0 if has_succeeded else 1, "reason": "Completed" if has_succeeded else "Error",
        "startedAt": attempt.get("startTime") or completed_at, "finishedAt": completed_at,
    }  # fmt: skip
    return {"terminated": {**fields, **({"message": attempt["message"]} if attempt.get("message") else {})}}


def render_log_lines(status: Status) -> tuple[list[str], bool]:
    """Log lines so far, and True if the run has ended; then the last line is its result."""
    lines = [line for result in status.get("results") or () for line in format_cell_result(result)]
    last_attempt = deadlines.get_last_attempt(status) or {}
    return ([*lines, format_result(last_attempt)], True) if last_attempt.get("completionTime") else (lines, False)
