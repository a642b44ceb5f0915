"""Converts live manifests to the apiVersion of the desired ones.

In: a desired manifest and the live one of its key. Out: the live one in the desired apiVersion. Never: raises; without
a conversion the fields stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.kube.objects import Manifest

_HPA: Final = "HorizontalPodAutoscaler"


def convert_live(desired: Manifest, live: Manifest) -> Manifest:
    """k8s: custom kinds have the same fields in all versions, unless a webhook converts them."""
    desired_version, live_version = desired.get("apiVersion"), live.get("apiVersion")
    if desired_version == live_version:
        return live
    converted = {**live, "apiVersion": desired_version}
    spec = live.get("spec")
    if live.get("kind") == _HPA and isinstance(spec, dict):
        if desired_version == "autoscaling/v1":
            converted["spec"] = _hpa_spec_to_v1(spec)
        elif live_version == "autoscaling/v1":
            converted["spec"] = _hpa_spec_to_v2(spec)
    return converted


def _hpa_spec_to_v1(spec: Mapping[str, Any]) -> dict[str, Any]:
    """k8s: autoscaling/v1 knows only CPU utilization; servers keep the rest in annotations."""
    v1_spec = {name: value for name, value in spec.items() if name not in ("metrics", "behavior")}
    metrics = spec.get("metrics")
    for metric in metrics if isinstance(metrics, list) else ():
        cpu_percent = _find_cpu_utilization(metric)
        if cpu_percent is not None:
            v1_spec["targetCPUUtilizationPercentage"] = cpu_percent
    return v1_spec


def _find_cpu_utilization(metric: Any) -> Any:
    resource = metric.get("resource") if isinstance(metric, dict) else None
    target = resource.get("target") if isinstance(resource, dict) and resource.get("name") == "cpu" else None
    return target.get("averageUtilization") if isinstance(target, dict) else None


def _hpa_spec_to_v2(spec: Mapping[str, Any]) -> dict[str, Any]:
    v2_spec = {name: value for name, value in spec.items() if name != "targetCPUUtilizationPercentage"}
    cpu_percent = spec.get("targetCPUUtilizationPercentage")
    if cpu_percent is not None:
        target = {"type": "Utilization", "averageUtilization": cpu_percent}
        v2_spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    return v2_spec
