"""Converts kinds that are served in two versions but stored in one: Event, HorizontalPodAutoscaler v1 and v2.

In, out: manifests without kind and apiVersion. Never: loses a field that the other version can hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from argosy.kube.objects import Manifest


class Conversion(NamedTuple):
    to_stored: Callable[[Manifest], Manifest]
    from_stored: Callable[[Manifest], Manifest]


# k8s: field of a core/v1 Event → its name in events.k8s.io/v1
EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
EVENT_NAMES_BACK = {new: old for old, new in EVENT_NAMES.items()}

SCALE_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
SCALE_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
SCALE_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
SCALE_CURRENT = "autoscaling.alpha.kubernetes.io/current-metrics"


def conversion_of(group: str, version: str, kind: str) -> Conversion | None:
    return CONVERSIONS.get((group, version, kind))


def _renamed(manifest: Manifest, names: dict[str, str]) -> Manifest:
    return {names.get(name, name): value for name, value in manifest.items()}


def event_to_stored(manifest: Manifest) -> Manifest:
    stored = _renamed(manifest, EVENT_NAMES_BACK)
    zero: Manifest = {"source": {}, "firstTimestamp": None, "lastTimestamp": None, "reportingComponent": ""}
    return {**zero, "reportingInstance": "", "involvedObject": {}, **stored}


def event_from_stored(stored: Manifest) -> Manifest:
    unsaid = {name for name in ("reportingComponent", "reportingInstance") if not stored.get(name)}
    return _renamed({name: value for name, value in stored.items() if name not in unsaid}, EVENT_NAMES)


def autoscaler_to_stored(manifest: Manifest) -> Manifest:
    """v1 → v2: the CPU target becomes a metric; values that v1 keeps in annotations become fields."""
    spec, status = dict(manifest.get("spec") or {}), dict(manifest.get("status") or {})
    annotations = dict(manifest["metadata"].get("annotations") or {})
    metrics = _unpacked(annotations, SCALE_METRICS) or []
    if (target := spec.pop("targetCPUUtilizationPercentage", None)) is not None:
        metrics = [_cpu_metric({"type": "Utilization", "averageUtilization": target}), *metrics]
    if metrics:
        spec["metrics"] = metrics
    if behavior := _unpacked(annotations, SCALE_BEHAVIOR):
        spec["behavior"] = behavior
    current = _unpacked(annotations, SCALE_CURRENT) or []
    if (used := status.pop("currentCPUUtilizationPercentage", None)) is not None:
        current = [_cpu_metric({"averageUtilization": used}, "current"), *current]
    status["currentMetrics"] = current or None
    if not status.get("currentReplicas"):  # k8s: v1 has 0, v2 omits it
        status.pop("currentReplicas", None)
    if conditions := _unpacked(annotations, SCALE_CONDITIONS):
        status["conditions"] = conditions
    return {**manifest, "metadata": _with_annotations(manifest, annotations), "spec": spec, "status": status}


def autoscaler_from_stored(stored: Manifest) -> Manifest:
    spec, status = dict(stored.get("spec") or {}), dict(stored.get("status") or {})
    annotations = dict(stored["metadata"].get("annotations") or {})
    metrics = list(spec.pop("metrics", None) or [])
    for metric in [each for each in metrics if _is_cpu_share(each, "target")][:1]:
        spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
        metrics.remove(metric)
    current = list(status.pop("currentMetrics", None) or [])
    for metric in [each for each in current if _is_cpu_share(each, "current")][:1]:
        status["currentCPUUtilizationPercentage"] = metric["resource"]["current"]["averageUtilization"]
        current.remove(metric)
    packed = {
        SCALE_METRICS: metrics,
        SCALE_BEHAVIOR: spec.pop("behavior", None),
        SCALE_CURRENT: current,
        SCALE_CONDITIONS: status.pop("conditions", None),
    }
    annotations |= {name: orjson.dumps(value).decode() for name, value in packed.items() if value}
    status.setdefault("currentReplicas", 0)
    return {**stored, "metadata": _with_annotations(stored, annotations), "spec": spec, "status": status}


def _cpu_metric(target: Manifest, place: str = "target") -> Manifest:
    return {"type": "Resource", "resource": {"name": "cpu", place: target}}


def _is_cpu_share(metric: Manifest, place: str) -> bool:
    resource = metric.get("resource") or {}
    share = (resource.get(place) or {}).get("averageUtilization")
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and share is not None


def _unpacked(annotations: dict[str, str], name: str) -> Any:
    try:
        return orjson.loads(annotations.pop(name, "null"))
    except orjson.JSONDecodeError:
        return None


def _with_annotations(manifest: Manifest, annotations: dict[str, str]) -> Manifest:
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return metadata


CONVERSIONS = {
    ("events.k8s.io", "v1", "Event"): Conversion(event_to_stored, event_from_stored),
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): Conversion(autoscaler_to_stored, autoscaler_from_stored),
}
