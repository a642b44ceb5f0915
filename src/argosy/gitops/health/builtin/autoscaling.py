"""Health of HorizontalPodAutoscalers.

In: a live manifest of any version since v1. Out: an Assessment with Argo CD's message. Never: evaluates metrics.
"""

from __future__ import annotations

from typing import Final

import orjson

from argosy.annotations import HORIZONTAL_POD_AUTOSCALER_CONDITIONS
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.builtin.fields import (
    FieldTypeError,
    StatusCondition,
    read_condition,
    read_conditions,
    read_map,
    read_objects,
    read_text,
)
from argosy.kube.objects import Manifest

_FAILURE_CONDITIONS: Final = frozenset(
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
_HEALTHY_CONDITIONS: Final = ("AbleToScale", "ScalingLimited")


def assess_horizontal_pod_autoscaler(manifest: Manifest) -> Assessment:
    hpa_conditions = (
        _read_conditions_annotation(manifest)
        if manifest["apiVersion"] == "autoscaling/v1"
        else read_conditions(manifest)
    )
    for condition in hpa_conditions:
        if (condition.type, condition.reason) in _FAILURE_CONDITIONS:
            return Assessment(HealthStatus.DEGRADED, condition.message)
    for condition in hpa_conditions:
        if condition.type in _HEALTHY_CONDITIONS and condition.status == "True":
            return Assessment(HealthStatus.HEALTHY, condition.message)
    return Assessment(HealthStatus.PROGRESSING, "Waiting to Autoscale")


def _read_conditions_annotation(manifest: Manifest) -> list[StatusCondition]:
    """k8s: v1 has no conditions field, so the API server writes them into an annotation as JSON."""
    annotations = read_map(manifest, "metadata", "annotations")
    if HORIZONTAL_POD_AUTOSCALER_CONDITIONS not in annotations:
        return []
    annotation = read_text(annotations, HORIZONTAL_POD_AUTOSCALER_CONDITIONS)
    try:
        entries = read_objects({"annotation": orjson.loads(annotation)}, "annotation")
        # argo: Go matches field names case-insensitively.
        return [read_condition({name.lower(): value for name, value in entry.items()}) for entry in entries]
    except ValueError as error:
        raise FieldTypeError(f"failed to convert conditions annotation to typed: {error}") from error
