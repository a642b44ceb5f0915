"""Health of PersistentVolumeClaims. In: a live manifest of v1. Out: an Assessment. Never: reads the StorageClass."""

from __future__ import annotations

from typing import Final

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.builtin.fields import read_text
from argosy.kube.objects import Manifest

_HEALTH_BY_PHASE: Final = {
    "Bound": HealthStatus.HEALTHY,
    "Pending": HealthStatus.PROGRESSING,
    "Lost": HealthStatus.DEGRADED,
}


def assess_persistent_volume_claim(manifest: Manifest) -> Assessment:
    return Assessment(_HEALTH_BY_PHASE.get(read_text(manifest, "status", "phase"), HealthStatus.UNKNOWN))
