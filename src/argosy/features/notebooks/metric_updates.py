"""Updates metrics for the actions of the controller.

In: jobs, statuses, results. Out: metrics. Never: decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.features.notebooks import deadlines
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.metrics import PREFIX, RUNNING, Metrics
from argosy.features.notebooks.statuses import TERMINAL, Status

RECONCILED: Final = f"{PREFIX}reconciliation_duration_seconds"
ERRORS: Final = f"{PREFIX}reconciliation_errors_total"
STARTED: Final = f"{PREFIX}pod_creations_total"
ENDED: Final = f"{PREFIX}validations_total"
CLONED: Final = f"{PREFIX}git_clone_duration_seconds"
CLONES: Final = f"{PREFIX}git_clones_total"
MODELS: Final = f"{PREFIX}model_validation_duration_seconds"
ASKED: Final = f"{PREFIX}model_health_checks_total"
PREDICTED: Final = f"{PREFIX}prediction_validations_total"
DETECTED: Final = f"{PREFIX}platform_detection_duration_seconds"


def stored(metrics: Metrics, job: Job, before: Status, after: Status) -> None:
    phase = str(after.get("phase"))
    metrics.stands(job.uid, job.namespace, phase)
    if phase in TERMINAL and before.get("phase") not in TERMINAL:
        began, done = deadlines.moment(after.get("startTime")), deadlines.moment(after.get("completionTime"))
        seconds = (done - began).total_seconds() if began and done else 0.0
        metrics.count(ENDED, {"namespace": job.namespace, "status": phase.lower()})
        metrics.count("notebook_validation_total", {"phase": phase})
        if _reason(after).startswith("Git"):
            metrics.count(CLONES, {"namespace": job.namespace, "result": "failed"})
        labels = {"job_name": job.name, "phase": phase}
        metrics.observe("notebook_validation_duration_seconds", seconds, labels, RUNNING)


def started(metrics: Metrics, job: Job, *, is_good: bool) -> None:
    metrics.count(STARTED, {"namespace": job.namespace, "result": "success" if is_good else "failed"})


def cloned(metrics: Metrics, job: Job, seconds: float) -> None:
    """Duration from the start of a run until its commit is known."""
    kind = "none" if not job.notebook.secret else "ssh" if job.notebook.url.startswith(("git@", "ssh:")) else "https"
    metrics.observe(CLONED, seconds, {"namespace": job.namespace, "auth_type": kind})
    metrics.count(CLONES, {"namespace": job.namespace, "result": "success"})


def _reason(status: Status) -> str:
    return next((str(each["reason"]) for each in status.get("conditions") or () if each["type"] == "Failed"), "")


def checked(metrics: Metrics, job: Job, found: Mapping[str, Any], seconds: float) -> None:
    platform = job.models.platform if job.models else ""
    labels = {"namespace": job.namespace, "platform": platform}
    metrics.observe(MODELS, seconds, {**labels, "result": "success" if found.get("success") else "failure"})
    detected = "true" if found.get("platformDetected") else "false"
    metrics.observe(DETECTED, seconds, {**labels, "detected": detected})
    existing = found.get("existingEnvironmentCheck") or {}
    for each in existing.get("modelsChecked") or ():
        metrics.count(ASKED, {**labels, "result": "healthy" if each.get("healthy") else "unhealthy"})
    if predicted := existing.get("predictionValidation"):
        result = "success" if predicted.get("success") else "failure"
        metrics.count(PREDICTED, {"namespace": job.namespace, "result": result})
