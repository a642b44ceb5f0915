"""Health of PersistentVolumeClaims. In: a live manifest of v1. Out: an Assessment. Never: reads the StorageClass."""

from __future__ import annotations

from typing import Final

from argosy.gitops.application.step_results import Assessment, Health
from argosy.gitops.health.builtin.fields import text
from argosy.kube.objects import Manifest

_PHASES: Final = {"Bound": Health.HEALTHY, "Pending": Health.PROGRESSING, "Lost": Health.DEGRADED}


def claim(manifest: Manifest) -> Assessment:
    return Assessment(_PHASES.get(text(manifest, "status", "phase"), Health.UNKNOWN))
