"""Health of APIServices, from their Available condition.

In: a live manifest. Out: an Assessment with Argo CD's message. Never: calls the API.
"""

from __future__ import annotations

from argosy.gitops.application.step_results import Assessment, Health
from argosy.gitops.health.builtin.fields import first_condition
from argosy.kube.objects import Manifest


def api_service(manifest: Manifest) -> Assessment:
    available = first_condition(manifest, "Available")
    if available is None:
        return Assessment(Health.PROGRESSING, "Waiting to be processed")
    health = Health.HEALTHY if available.status == "True" else Health.PROGRESSING
    return Assessment(health, f"{available.reason}: {available.message}")
