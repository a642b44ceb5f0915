"""Converts kinds that are served in two versions but stored in one: Event, HorizontalPodAutoscaler v1 and v2.

In, out: manifests without kind and apiVersion. Never: loses a field that the other version can hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from argosy.annotations import HORIZONTAL_POD_AUTOSCALER_CONDITIONS
from argosy.kube.objects import Manifest


class Conversion(NamedTuple):
    to_stored: Callable[[Manifest], Manifest]
    from_stored: Callable[[Manifest], Manifest]


# k8s: field of a core/v1 Event → its name in events.k8s.io/v1
EVENTS_GROUP_FIELD_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
CORE_EVENT_FIELD_NAMES = {new: old for old, new in EVENTS_GROUP_FIELD_NAMES.items()}

HPA_METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/metrics"
HPA_BEHAVIOR_ANNOTATION = "autoscaling.alpha.kubernetes.io/behavior"
HPA_CURRENT_METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/current-metrics"


def find_conversion(group: str, version: str, kind: str) -> Conversion | None:
    return CONVERSIONS.get((group, version, kind))


def _rename_fields(manifest: Manifest, names: dict[str, str]) -> Manifest:
    return {names.get(name, name): value for name, value in manifest.items()}


def event_to_stored(manifest: Manifest) -> Manifest:
    stored = _rename_fields(manifest, CORE_EVENT_FIELD_NAMES)
    zero: Manifest = {"source": {}, "firstTimestamp": None, "lastTimestamp": None, "reportingComponent": ""}
    return {**zero, "reportingInstance": "", "involvedObject": {}, **stored}


def event_from_stored(stored: Manifest) -> Manifest:
    empty_fields = {name for name in ("reportingComponent", "reportingInstance") if not stored.get(name)}
    return _rename_fields(
        {name: value for name, value in stored.items() if name not in empty_fields}, EVENTS_GROUP_FIELD_NAMES
    )


def autoscaler_to_stored(manifest: Manifest) -> Manifest:
    """v1 → v2: the CPU target becomes a metric; values that v1 keeps in annotations become fields."""
    spec, status = dict(manifest.get("spec") or {}), dict(manifest.get("status") or {})
    annotations = dict(manifest["metadata"].get("annotations") or {})
    metrics = _pop_json_annotation(annotations, HPA_METRICS_ANNOTATION) or []
    if (target_utilization := spec.pop("targetCPUUtilizationPercentage", None)) is not None:
        metrics = [_build_cpu_metric({"type": "Utilization", "averageUtilization": target_utilization}), *metrics]
    if metrics:
        spec["metrics"] = metrics
    if behavior := _pop_json_annotation(annotations, HPA_BEHAVIOR_ANNOTATION):
        spec["behavior"] = behavior
    current_metrics = _pop_json_annotation(annotations, HPA_CURRENT_METRICS_ANNOTATION) or []
    if (used_utilization := status.pop("currentCPUUtilizationPercentage", None)) is not None:
        current_metrics = [_build_cpu_metric({"averageUtilization": used_utilization}, "current"), *current_metrics]
    status["currentMetrics"] = current_metrics or None
    if not status.get("currentReplicas"):  # k8s: v1 has 0, v2 omits it
        status.pop("currentReplicas", None)
    if conditions := _pop_json_annotation(annotations, HORIZONTAL_POD_AUTOSCALER_CONDITIONS):
        status["conditions"] = conditions
    return {**manifest, "metadata": _replace_annotations(manifest, annotations), "spec": spec, "status": status}


def autoscaler_from_stored(stored: Manifest) -> Manifest:
    spec, status = dict(stored.get("spec") or {}), dict(stored.get("status") or {})
    annotations = dict(stored["metadata"].get("annotations") or {})
    metrics = list(spec.pop("metrics", None) or [])
    for metric in [candidate for candidate in metrics if _is_cpu_utilization(candidate, "target")][:1]:
        spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
        metrics.remove(metric)
    current_metrics = list(status.pop("currentMetrics", None) or [])
    for metric in [candidate for candidate in current_metrics if _is_cpu_utilization(candidate, "current")][:1]:
        status["currentCPUUtilizationPercentage"] = metric["resource"]["current"]["averageUtilization"]
        current_metrics.remove(metric)
    annotation_values = {
        HPA_METRICS_ANNOTATION: metrics,
        HPA_BEHAVIOR_ANNOTATION: spec.pop("behavior", None),
        HPA_CURRENT_METRICS_ANNOTATION: current_metrics,
        HORIZONTAL_POD_AUTOSCALER_CONDITIONS: status.pop("conditions", None),
    }
    annotations |= {name: orjson.dumps(value).decode() for name, value in annotation_values.items() if value}
    status.setdefault("currentReplicas", 0)
    return {**stored, "metadata": _replace_annotations(stored, annotations), "spec": spec, "status": status}


def _build_cpu_metric(value: Manifest, field: str = "target") -> Manifest:
    return {"type": "Resource", "resource": {"name": "cpu", field: value}}


def _is_cpu_utilization(metric: Manifest, field: str) -> bool:
    resource = metric.get("resource") or {}
    utilization = (resource.get(field) or {}).get("averageUtilization")
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and utilization is not None


def _pop_json_annotation(annotations: dict[str, str], name: str) -> Any:
    try:
        return orjson.loads(annotations.pop(name, "null"))
    except orjson.JSONDecodeError:
        return None


def _replace_annotations(manifest: Manifest, annotations: dict[str, str]) -> Manifest:
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return metadata


CONVERSIONS = {
    ("events.k8s.io", "v1", "Event"): Conversion(event_to_stored, event_from_stored),
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): Conversion(autoscaler_to_stored, autoscaler_from_stored),
}
