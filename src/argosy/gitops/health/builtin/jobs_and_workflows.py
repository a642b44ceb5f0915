"""Health of Jobs and Argo Workflows.

In: a live manifest. Out: an Assessment with Argo CD's message. Never: reads the Pods.
"""

from __future__ import annotations

from typing import Final

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.builtin.fields import read_conditions, read_text
from argosy.kube.objects import Manifest


def assess_job(manifest: Manifest) -> Assessment:
    failure: str | None = None
    end_message: str | None = None
    is_suspended = False
    for condition in read_conditions(manifest):
        # argo: only the status of Suspended is read; Failed and Complete count if they exist.
        if condition.type == "Failed":
            failure = condition.message
        elif condition.type in ("Complete", "Suspended"):
            end_message = condition.message
            is_suspended |= condition.type == "Suspended" and condition.status == "True"
    if failure is not None:
        return Assessment(HealthStatus.DEGRADED, failure)
    if end_message is None:
        return Assessment(HealthStatus.PROGRESSING)
    # argo: the health of a suspended Job has no message, although its condition has one.
    return Assessment(HealthStatus.SUSPENDED) if is_suspended else Assessment(HealthStatus.HEALTHY, end_message)


_HEALTH_BY_WORKFLOW_PHASE: Final = {
    "": HealthStatus.PROGRESSING,
    "Pending": HealthStatus.PROGRESSING,
    "Running": HealthStatus.PROGRESSING,
    "Succeeded": HealthStatus.HEALTHY,
    "Failed": HealthStatus.DEGRADED,
    "Error": HealthStatus.DEGRADED,
}


def assess_workflow(manifest: Manifest) -> Assessment:
    phase = read_text(manifest, "status", "phase")
    return Assessment(
        _HEALTH_BY_WORKFLOW_PHASE.get(phase, HealthStatus.UNKNOWN), read_text(manifest, "status", "message")
    )
