"""Converts live manifests to the apiVersion of the desired ones.

In: a desired manifest and the live one of its key. Out: the live one in the desired apiVersion. Never: raises; without
a conversion the fields stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.kube.objects import Manifest

_AUTOSCALER: Final = "HorizontalPodAutoscaler"


def in_version_of(desired: Manifest, live: Manifest) -> Manifest:
    """k8s: custom kinds have the same fields in all versions, unless a webhook converts them."""
    wanted, found = desired.get("apiVersion"), live.get("apiVersion")
    if wanted == found:
        return live
    made = {**live, "apiVersion": wanted}
    spec = live.get("spec")
    if live.get("kind") == _AUTOSCALER and isinstance(spec, dict):
        if wanted == "autoscaling/v1":
            made["spec"] = _autoscaler_v1(spec)
        elif found == "autoscaling/v1":
            made["spec"] = _autoscaler_v2(spec)
    return made


def _autoscaler_v1(spec: Mapping[str, Any]) -> dict[str, Any]:
    """k8s: autoscaling/v1 knows only CPU utilization; servers keep the rest in annotations."""
    made = {name: value for name, value in spec.items() if name not in ("metrics", "behavior")}
    metrics = spec.get("metrics")
    for each in metrics if isinstance(metrics, list) else ():
        share = _share_of_cpu(each)
        if share is not None:
            made["targetCPUUtilizationPercentage"] = share
    return made


def _share_of_cpu(metric: Any) -> Any:
    resource = metric.get("resource") if isinstance(metric, dict) else None
    target = resource.get("target") if isinstance(resource, dict) and resource.get("name") == "cpu" else None
    return target.get("averageUtilization") if isinstance(target, dict) else None


def _autoscaler_v2(spec: Mapping[str, Any]) -> dict[str, Any]:
    made = {name: value for name, value in spec.items() if name != "targetCPUUtilizationPercentage"}
    share = spec.get("targetCPUUtilizationPercentage")
    if share is not None:
        target = {"type": "Utilization", "averageUtilization": share}
        made["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    return made
