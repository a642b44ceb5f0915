"""Health of APIServices, from their Available condition.

In: a live manifest. Out: an Assessment with Argo CD's message. Never: calls the API.
"""

from __future__ import annotations

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.builtin.fields import find_condition
from argosy.kube.objects import Manifest


def assess_api_service(manifest: Manifest) -> Assessment:
    available = find_condition(manifest, "Available")
    if available is None:
        return Assessment(HealthStatus.PROGRESSING, "Waiting to be processed")
    health = HealthStatus.HEALTHY if available.status == "True" else HealthStatus.PROGRESSING
    return Assessment(health, f"{available.reason}: {available.message}")
