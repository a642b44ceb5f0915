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
from argosy.kube.objects import Manifest, annotation
from argosy.kube.schema import quantity

TOLERANCE: Final = Decimal("0.1")  # k8s: smaller deviations from the target do not scale
WORDS: Final = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
FAILED: Final = {kind: f"FailedGet{kind}Metric" for kind in WORDS}


@dataclass(frozen=True)
class Metric:
    kind: str
    name: str
    how: str  # Utilization, AverageValue or Value
    wanted: Decimal
    written: Mapping[str, Any]  # the entry in spec.metrics

    @property
    def shown(self) -> str:
        """k8s: the wording used in conditions and events."""
        if self.kind in ("Resource", "ContainerResource"):
            share = "resource utilization (percentage of request)" if self.how == "Utilization" else "resource"
            return f"{self.name} {share}"
        return f"{WORDS[self.kind]} metric {self.name}"


class Unmeasured(UserError):
    """A metric cannot be read; `reason` is the condition reason for its type."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.reason = FAILED.get(kind, "FailedGetResourceMetric")


def metrics_of(autoscaler: Manifest) -> list[Metric]:
    spec = autoscaler["spec"]
    found = [_read(each) for each in spec.get("metrics") or ()]
    if (percent := spec.get("targetCPUUtilizationPercentage")) is not None:  # k8s: autoscaling/v1
        found.append(Metric("Resource", "cpu", "Utilization", Decimal(percent), {}))
    return found or [Metric("Resource", "cpu", "Utilization", Decimal(80), {})]


def _read(written: Mapping[str, Any]) -> Metric:
    kind = str(written["type"])
    about = written.get(WORDS[kind]) or {}
    target = about.get("target") or {}
    name = str(about.get("name") or (about.get("metric") or {}).get("name") or "")
    if target.get("averageUtilization") is not None:
        return Metric(kind, name, "Utilization", Decimal(target["averageUtilization"]), written)
    how = "AverageValue" if target.get("averageValue") is not None else "Value"
    much = target.get("averageValue") if how == "AverageValue" else target.get("value")
    return Metric(kind, name, how, quantity.parse(much or 0), written)


def measured(manifests: Sequence[Manifest]) -> dict[str, Decimal]:
    """Read metric values from annotations such as `cpu=90%,queue=250m`; the first manifest that sets a metric wins."""
    found: dict[str, Decimal] = {}
    for manifest in manifests:
        for name, value in _said(annotation(manifest, METRICS)):
            found.setdefault(name, value)
    return found


def _said(text: str) -> Iterator[tuple[str, Decimal]]:
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, much = part.partition("=")
        try:
            if not equals:
                raise ManifestError("no value after the metric name")
            yield name.strip(), quantity.parse(much.strip().removesuffix("%"))
        except ManifestError as error:
            raise UserError(
                f"invalid metric {part!r}; write for example cpu=90 or queue=250m", where=METRICS
            ) from error


def ratio_of(metric: Metric, values: Mapping[str, Decimal], template: Mapping[str, Any], replicas: int) -> Decimal:
    """Return usage divided by the target value; a metric without a value counts as exactly on target.

    Annotated values are totals over all Pods: more Pods mean less usage each, so the replica count converges.
    """
    if metric.how == "Utilization":
        for container in template.get("containers") or ():
            resources = container.get("resources") or {}
            if metric.name not in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}:
                problem = f"missing request for {metric.name} in container {container['name']}"
                raise Unmeasured(metric.kind, f"failed to get {metric.name} utilization: {problem}")
    if metric.name not in values or not metric.wanted:
        return Decimal(1)
    return values[metric.name] / metric.wanted / replicas


def proposed(ratio: Decimal, current: int) -> int:
    return current if abs(ratio - 1) <= TOLERANCE else math.ceil(ratio * current)


def bounded(wanted: int, autoscaler: Manifest) -> tuple[int, str]:
    """Clamp to minReplicas and maxReplicas; also return the reason of the limit that applied, if any."""
    least, most = int(autoscaler["spec"].get("minReplicas") or 1), int(autoscaler["spec"]["maxReplicas"])
    if wanted > most:
        return most, "TooManyReplicas"
    return (least, "TooFewReplicas") if wanted < least else (wanted, "")


def current_metric(metric: Metric, ratio: Decimal) -> dict[str, Any]:
    """Build the entry of status.currentMetrics."""
    value = ratio * metric.wanted
    amount = str(quantity.Quantity(value.quantize(Decimal("0.001")).normalize(), "decimal"))
    current: dict[str, Any] = {"averageUtilization": round(value)} if metric.how == "Utilization" else {}
    current["value" if metric.how == "Value" else "averageValue"] = "0" if current else amount
    about = {name: value for name, value in (metric.written.get(WORDS[metric.kind]) or {}).items() if name != "target"}
    if metric.kind in ("Resource", "ContainerResource"):
        about["name"] = metric.name
    return {"type": metric.kind, WORDS[metric.kind]: {**about, "current": current}}
