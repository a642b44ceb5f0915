"""Computes the replica count of a HorizontalPodAutoscaler.

In: an autoscaler, the metric values from annotations, its target. Out: a replica count, or the reason why there is
none.
Never: measures a metric.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from argosy.annotations import METRICS
from argosy.errors import ManifestError, UserError
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.schema import quantity

TOLERANCE: Final = Decimal("0.1")  # k8s: smaller deviations from the target do not scale
METRIC_FIELDS: Final = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
FAILURE_REASONS: Final = {kind: f"FailedGet{kind}Metric" for kind in METRIC_FIELDS}


@dataclass(frozen=True)
class HpaMetric:
    kind: str
    name: str
    target_type: str  # Utilization, AverageValue or Value
    target_value: Decimal
    spec: Mapping[str, Any]  # the entry in spec.metrics

    @property
    def description(self) -> str:
        """k8s: the wording used in conditions and events."""
        if self.kind in ("Resource", "ContainerResource"):
            suffix = "resource utilization (percentage of request)" if self.target_type == "Utilization" else "resource"
            return f"{self.name} {suffix}"
        return f"{METRIC_FIELDS[self.kind]} metric {self.name}"


class MetricUnavailable(UserError):
    """A metric cannot be read; `reason` is the condition reason for its type."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.reason = FAILURE_REASONS.get(kind, "FailedGetResourceMetric")


def read_metrics(autoscaler: Manifest) -> list[HpaMetric]:
    spec = autoscaler["spec"]
    metrics = [_read_metric(entry) for entry in spec.get("metrics") or ()]
    if (percent := spec.get("targetCPUUtilizationPercentage")) is not None:  # k8s: autoscaling/v1
        metrics.append(HpaMetric("Resource", "cpu", "Utilization", Decimal(percent), {}))
    return metrics or [HpaMetric("Resource", "cpu", "Utilization", Decimal(80), {})]


def _read_metric(metric_spec: Mapping[str, Any]) -> HpaMetric:
    kind = str(metric_spec["type"])
    source = metric_spec.get(METRIC_FIELDS[kind]) or {}
    target = source.get("target") or {}
    name = str(source.get("name") or (source.get("metric") or {}).get("name") or "")
    if target.get("averageUtilization") is not None:
        return HpaMetric(kind, name, "Utilization", Decimal(target["averageUtilization"]), metric_spec)
    target_type = "AverageValue" if target.get("averageValue") is not None else "Value"
    target_quantity = target.get("averageValue") if target_type == "AverageValue" else target.get("value")
    return HpaMetric(kind, name, target_type, quantity.parse(target_quantity or 0), metric_spec)


def read_metric_values(manifests: Sequence[Manifest]) -> dict[str, Decimal]:
    """Read metric values from annotations such as `cpu=90%,queue=250m`; the first manifest that sets a metric wins."""
    values: dict[str, Decimal] = {}
    for manifest in manifests:
        for name, value in _parse_metric_values(get_annotation(manifest, METRICS)):
            values.setdefault(name, value)
    return values


def _parse_metric_values(text: str) -> Iterator[tuple[str, Decimal]]:
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, separator, amount = part.partition("=")
        try:
            if not separator:
                raise ManifestError("no value after the metric name")
            yield name.strip(), quantity.parse(amount.strip().removesuffix("%"))
        except ManifestError as error:
            raise UserError(
                f"invalid metric {part!r}; write for example cpu=90 or queue=250m", where=METRICS
            ) from error


def compute_usage_ratio(
    metric: HpaMetric, values: Mapping[str, Decimal], pod_spec: Mapping[str, Any], replicas: int
) -> Decimal:
    """Return usage divided by the target value; a metric without a value counts as exactly on target.

    Annotated values are totals over all Pods: more Pods mean less usage each, so the replica count converges.
    """
    if metric.target_type == "Utilization":
        for container in pod_spec.get("containers") or ():
            resources = container.get("resources") or {}
            if metric.name not in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}:
                problem = f"missing request for {metric.name} in container {container['name']}"
                raise MetricUnavailable(metric.kind, f"failed to get {metric.name} utilization: {problem}")
    if metric.name not in values or not metric.target_value:
        return Decimal(1)
    return values[metric.name] / metric.target_value / replicas


def compute_desired_replicas(ratio: Decimal, current_replicas: int) -> int:
    return current_replicas if abs(ratio - 1) <= TOLERANCE else math.ceil(ratio * current_replicas)


def clamp_replicas(replicas: int, autoscaler: Manifest) -> tuple[int, str]:
    """Clamp to minReplicas and maxReplicas; also return the reason of the limit that applied, if any."""
    min_replicas, max_replicas = int(autoscaler["spec"].get("minReplicas") or 1), int(autoscaler["spec"]["maxReplicas"])
    if replicas > max_replicas:
        return max_replicas, "TooManyReplicas"
    return (min_replicas, "TooFewReplicas") if replicas < min_replicas else (replicas, "")


def build_current_metric(metric: HpaMetric, ratio: Decimal) -> dict[str, Any]:
    """Build the entry of status.currentMetrics."""
    value = ratio * metric.target_value
    amount = str(quantity.Quantity(value.quantize(Decimal("0.001")).normalize(), "decimal"))
    current: dict[str, Any] = {"averageUtilization": round(value)} if metric.target_type == "Utilization" else {}
    current["value" if metric.target_type == "Value" else "averageValue"] = "0" if current else amount
    source = {
        name: value for name, value in (metric.spec.get(METRIC_FIELDS[metric.kind]) or {}).items() if name != "target"
    }
    if metric.kind in ("Resource", "ContainerResource"):
        source["name"] = metric.name
    return {"type": metric.kind, METRIC_FIELDS[metric.kind]: {**source, "current": current}}
