"""Health of HorizontalPodAutoscalers.

In: a live manifest of any version since v1. Out: an Assessment with Argo CD's message. Never: evaluates metrics.
"""

from __future__ import annotations

from typing import Final

import orjson

from argosy.annotations import HORIZONTAL_POD_AUTOSCALER_CONDITIONS
from argosy.gitops.application.step_results import Assessment, Health
from argosy.gitops.health.builtin.fields import Condition, WrongField, condition_of, conditions, items, mapping, text
from argosy.kube.objects import Manifest

_TROUBLES: Final = frozenset(
    (
        ("AbleToScale", "FailedGetScale"),
        ("AbleToScale", "FailedUpdateScale"),
        ("ScalingActive", "FailedGetResourceMetric"),
        ("ScalingActive", "FailedGetContainerResourceMetric"),
        ("ScalingActive", "FailedGetPodsMetric"),
        ("ScalingActive", "FailedGetObjectMetric"),
        ("ScalingActive", "FailedGetExternalMetric"),
        ("ScalingActive", "InvalidSelector"),
    )
)
_ABLE: Final = ("AbleToScale", "ScalingLimited")


def horizontal_pod_autoscaler(manifest: Manifest) -> Assessment:
    found = _annotated(manifest) if manifest["apiVersion"] == "autoscaling/v1" else conditions(manifest)
    for condition in found:
        if (condition.type, condition.reason) in _TROUBLES:
            return Assessment(Health.DEGRADED, condition.message)
    for condition in found:
        if condition.type in _ABLE and condition.status == "True":
            return Assessment(Health.HEALTHY, condition.message)
    return Assessment(Health.PROGRESSING, "Waiting to Autoscale")


def _annotated(manifest: Manifest) -> list[Condition]:
    """k8s: v1 has no conditions field, so the API server writes them into an annotation as JSON."""
    annotations = mapping(manifest, "metadata", "annotations")
    if HORIZONTAL_POD_AUTOSCALER_CONDITIONS not in annotations:
        return []
    written = text(annotations, HORIZONTAL_POD_AUTOSCALER_CONDITIONS)
    try:
        found = items({"annotation": orjson.loads(written)}, "annotation")
        # argo: Go matches field names case-insensitively.
        return [condition_of({name.lower(): value for name, value in each.items()}) for each in found]
    except ValueError as error:
        raise WrongField(f"failed to convert conditions annotation to typed: {error}") from error
