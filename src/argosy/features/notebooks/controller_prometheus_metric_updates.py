"""Updates metrics for the actions of the controller.

In: jobs, statuses, results. Out: metrics. Never: decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.features.notebooks import deadlines
from argosy.features.notebooks.controller_prometheus_metrics import PREFIX, RUN_BUCKETS, NotebookMetrics
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.notebook_validation_job_status import TERMINAL, Status

RECONCILE_DURATION_METRIC: Final = f"{PREFIX}reconciliation_duration_seconds"
RECONCILE_ERRORS_METRIC: Final = f"{PREFIX}reconciliation_errors_total"
POD_CREATIONS_METRIC: Final = f"{PREFIX}pod_creations_total"
VALIDATIONS_METRIC: Final = f"{PREFIX}validations_total"
CLONE_DURATION_METRIC: Final = f"{PREFIX}git_clone_duration_seconds"
CLONES_METRIC: Final = f"{PREFIX}git_clones_total"
MODEL_CHECK_DURATION_METRIC: Final = f"{PREFIX}model_validation_duration_seconds"
MODEL_HEALTH_CHECKS_METRIC: Final = f"{PREFIX}model_health_checks_total"
PREDICTION_CHECKS_METRIC: Final = f"{PREFIX}prediction_validations_total"
PLATFORM_DETECTION_METRIC: Final = f"{PREFIX}platform_detection_duration_seconds"


def record_stored_status(metrics: NotebookMetrics, job: NotebookJob, before: Status, after: Status) -> None:
    phase = str(after.get("phase"))
    metrics.set_phase(job.uid, job.namespace, phase)
    if phase in TERMINAL and before.get("phase") not in TERMINAL:
        started_at, completed_at = (
            deadlines.parse_time(after.get("startTime")),
            deadlines.parse_time(after.get("completionTime")),
        )
        seconds = (completed_at - started_at).total_seconds() if started_at and completed_at else 0.0
        metrics.count(VALIDATIONS_METRIC, {"namespace": job.namespace, "status": phase.lower()})
        metrics.count("notebook_validation_total", {"phase": phase})
        if _read_failure_reason(after).startswith("Git"):
            metrics.count(CLONES_METRIC, {"namespace": job.namespace, "result": "failed"})
        labels = {"job_name": job.name, "phase": phase}
        metrics.observe("notebook_validation_duration_seconds", seconds, labels, RUN_BUCKETS)


def record_pod_creation(metrics: NotebookMetrics, job: NotebookJob, *, has_succeeded: bool) -> None:
    metrics.count(
        POD_CREATIONS_METRIC, {"namespace": job.namespace, "result": "success" if has_succeeded else "failed"}
    )


def record_clone(metrics: NotebookMetrics, job: NotebookJob, seconds: float) -> None:
    """Duration from the start of a run until its commit is known."""
    auth_type = (
        "none" if not job.notebook.secret else "ssh" if job.notebook.url.startswith(("git@", "ssh:")) else "https"
    )
    metrics.observe(CLONE_DURATION_METRIC, seconds, {"namespace": job.namespace, "auth_type": auth_type})
    metrics.count(CLONES_METRIC, {"namespace": job.namespace, "result": "success"})


def _read_failure_reason(status: Status) -> str:
    return next(
        (str(condition["reason"]) for condition in status.get("conditions") or () if condition["type"] == "Failed"), ""
    )


def record_model_check(
    metrics: NotebookMetrics, job: NotebookJob, model_result: Mapping[str, Any], seconds: float
) -> None:
    platform = job.models.platform if job.models else ""
    labels = {"namespace": job.namespace, "platform": platform}
    metrics.observe(
        MODEL_CHECK_DURATION_METRIC,
        seconds,
        {**labels, "result": "success" if model_result.get("success") else "failure"},
    )
    detected = "true" if model_result.get("platformDetected") else "false"
    metrics.observe(PLATFORM_DETECTION_METRIC, seconds, {**labels, "detected": detected})
    existing = model_result.get("existingEnvironmentCheck") or {}
    for model in existing.get("modelsChecked") or ():
        metrics.count(
            MODEL_HEALTH_CHECKS_METRIC, {**labels, "result": "healthy" if model.get("healthy") else "unhealthy"}
        )
    if predicted := existing.get("predictionValidation"):
        result = "success" if predicted.get("success") else "failure"
        metrics.count(PREDICTION_CHECKS_METRIC, {"namespace": job.namespace, "result": result})
