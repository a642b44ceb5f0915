"""Health of Jobs and Argo Workflows.

In: a live manifest. Out: an Assessment with Argo CD's message. Never: reads the Pods.
"""

from __future__ import annotations

from typing import Final

from argosy.gitops.application.step_results import Assessment, Health
from argosy.gitops.health.builtin.fields import conditions, text
from argosy.kube.objects import Manifest


def job(manifest: Manifest) -> Assessment:
    failure: str | None = None
    ending: str | None = None
    suspended = False
    for condition in conditions(manifest):
        # argo: only the status of Suspended is read; Failed and Complete count if they exist.
        if condition.type == "Failed":
            failure = condition.message
        elif condition.type in ("Complete", "Suspended"):
            ending = condition.message
            suspended |= condition.type == "Suspended" and condition.status == "True"
    if failure is not None:
        return Assessment(Health.DEGRADED, failure)
    if ending is None:
        return Assessment(Health.PROGRESSING)
    # argo: the health of a suspended Job has no message, although its condition has one.
    return Assessment(Health.SUSPENDED) if suspended else Assessment(Health.HEALTHY, ending)


_WORKFLOW_PHASES: Final = {
    "": Health.PROGRESSING,
    "Pending": Health.PROGRESSING,
    "Running": Health.PROGRESSING,
    "Succeeded": Health.HEALTHY,
    "Failed": Health.DEGRADED,
    "Error": Health.DEGRADED,
}


def workflow(manifest: Manifest) -> Assessment:
    phase = text(manifest, "status", "phase")
    return Assessment(_WORKFLOW_PHASES.get(phase, Health.UNKNOWN), text(manifest, "status", "message"))
