"""Sums up the resources that manifests request: CPU, memory and GPUs, times replicas.

In: manifests. Out: exact sums. Never: counts short-lived Pods (Jobs) or Pods whose number depends on nodes
(DaemonSets).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from argosy.errors import ArgosyError
from argosy.gitops.analysis.repository_view import ManifestWithLocations
from argosy.kube.schema import quantity
from argosy.kube.well_known_kinds import INFERENCE_SERVICE

RUNTIME_KINDS: Final = ("ServingRuntime", "ClusterServingRuntime")
COMPONENT_FIELDS: Final = ("predictor", "transformer", "explainer")
AUTOSCALER: Final = ("autoscaling", "HorizontalPodAutoscaler")
_TEMPLATE_PATH: Final = ("spec", "template", "spec")
_LONG_RUNNING_KINDS: Final = {
    ("apps", "Deployment"): _TEMPLATE_PATH,
    ("apps", "StatefulSet"): _TEMPLATE_PATH,
    ("apps", "ReplicaSet"): _TEMPLATE_PATH,
    ("argoproj.io", "Rollout"): _TEMPLATE_PATH,
    ("serving.kserve.io", "LLMInferenceService"): ("spec", "template"),
    ("", "Pod"): ("spec",),
}
_ZERO: Final = Decimal(0)


class ResourceAmount(NamedTuple):
    cpu: Decimal = _ZERO
    memory: Decimal = _ZERO
    gpu: Decimal = _ZERO

    def add(self, other: ResourceAmount, times: int = 1) -> ResourceAmount:
        return ResourceAmount(
            *(own_value + other_value * times for own_value, other_value in zip(self, other, strict=True))
        )

    def render_parts(self) -> list[str]:
        """Render `CPU +1`, `memory -2Gi`, `GPU ±0`; CPU and GPU are always shown because people look for them."""
        memory = [f"memory {render_signed(self.memory, is_binary=True)}"] if self.memory else []
        return [f"CPU {render_signed(self.cpu)}", *memory, f"GPU {render_signed(self.gpu)}"]


def render_signed(value: Decimal, *, is_binary: bool = False) -> str:
    if not value:
        return "±0"
    text = str(quantity.Quantity(abs(value), "binary" if is_binary else "decimal"))
    return f"{'+' if value > 0 else '-'}{text}"


class RequestedResources(NamedTuple):
    """Requested resources with minimum and with maximum replicas."""

    minimum: ResourceAmount = ResourceAmount()
    maximum: ResourceAmount = ResourceAmount()


def sum_requests(items: Iterable[ManifestWithLocations]) -> RequestedResources:
    all_items = list(items)
    runtimes = {item.key.name: item for item in all_items if item.key.kind in RUNTIME_KINDS}
    bounds_by_target = {
        _get_scale_target(item): read_autoscaler_bounds(item) for item in all_items if item.group_kind == AUTOSCALER
    }
    minimum = maximum = ResourceAmount()
    for item in all_items:
        for amount, low, high in _list_requests(item, runtimes, bounds_by_target):
            minimum, maximum = minimum.add(amount, low), maximum.add(amount, high)
    return RequestedResources(minimum, maximum)


def _get_scale_target(autoscaler: ManifestWithLocations) -> tuple[str, str, str]:
    target = ("spec", "scaleTargetRef")
    return autoscaler.key.namespace, autoscaler.get_string(*target, "kind"), autoscaler.get_string(*target, "name")


def read_autoscaler_bounds(autoscaler: ManifestWithLocations) -> tuple[int, int]:
    """k8s: an autoscaler keeps one replica if minReplicas is not set."""
    return read_replica_range(autoscaler.get_map("spec"))


def _list_requests(
    item: ManifestWithLocations,
    runtimes: Mapping[str, ManifestWithLocations],
    bounds_by_target: Mapping[tuple[str, str, str], tuple[int, int]],
) -> Iterable[tuple[ResourceAmount, int, int]]:
    if item.group_kind in _LONG_RUNNING_KINDS:
        count = read_replicas(item)
        # k8s: an autoscaler decides, unless replicas is 0.
        autoscaler_bounds = bounds_by_target.get((item.key.namespace, item.key.kind, item.key.name)) if count else None
        yield _sum_pod(item.get_map(*_LONG_RUNNING_KINDS[item.group_kind])), *(autoscaler_bounds or (count, count))
    elif item.group_kind == INFERENCE_SERVICE:
        for component in COMPONENT_FIELDS:
            if spec := item.get_map("spec", component):
                low, high = read_replica_range(spec)
                yield _sum_component(spec, runtimes), low, high


def read_replicas(item: ManifestWithLocations) -> int:
    value = 1 if item.group_kind == ("", "Pod") else item.get_value("spec", "replicas")
    return value if isinstance(value, int) else 1


def read_replica_range(component: Mapping[str, Any]) -> tuple[int, int]:
    """k8s: KServe keeps one replica if minReplicas is not set, and none if it is 0."""
    low, high = component.get("minReplicas"), component.get("maxReplicas")
    minimum = low if isinstance(low, int) else 1
    return minimum, max(minimum, high if isinstance(high, int) else 0)


def _sum_component(spec: Mapping[str, Any], runtimes: Mapping[str, ManifestWithLocations]) -> ResourceAmount:
    amount = _sum_pod(spec)
    for part in spec.values():
        if isinstance(part, dict) and isinstance(part.get("resources"), dict):
            amount = amount.add(_sum_container(part))
    model = spec.get("model")
    if isinstance(model, dict) and not model.get("resources") and (item := runtimes.get(str(model.get("runtime")))):
        amount = amount.add(_sum_pod(item.get_map("spec")))
    return amount


def _sum_pod(spec: Mapping[str, Any]) -> ResourceAmount:
    """k8s: containers and sidecars add up; init containers count as the largest one of them."""
    running, initial = ResourceAmount(), ResourceAmount()
    for container in _as_maps(spec.get("containers")):
        running = running.add(_sum_container(container))
    for container in _as_maps(spec.get("initContainers")):
        if container.get("restartPolicy") == "Always":
            running = running.add(_sum_container(container))
        else:
            initial = ResourceAmount(*map(max, initial, _sum_container(container)))
    return ResourceAmount(*map(max, running, initial))


def _sum_container(container: Mapping[str, Any]) -> ResourceAmount:
    resources_value = container.get("resources")
    resources = resources_value if isinstance(resources_value, dict) else {}
    limits, requests = (_read_amounts(resources.get(name)) for name in ("limits", "requests"))
    effective_requests = {**limits, **requests}  # k8s: the limit is the default request
    gpus = sum(
        (value for name, value in effective_requests.items() if name.endswith("/gpu") or ".com/mig-" in name), _ZERO
    )
    return ResourceAmount(effective_requests.get("cpu", _ZERO), effective_requests.get("memory", _ZERO), gpus)


def _read_amounts(quantities: Any) -> dict[str, Decimal]:
    amounts = {}
    for name, value in quantities.items() if isinstance(quantities, dict) else ():
        try:
            amounts[str(name)] = quantity.parse(value)
        except (ArgosyError, TypeError, ValueError, AttributeError):
            continue  # reported by the schema rules
    return amounts


def _as_maps(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
