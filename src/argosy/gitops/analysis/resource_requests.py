"""Sums up the resources that manifests request: CPU, memory and GPUs, times replicas.

In: manifests. Out: exact sums. Never: counts short-lived Pods (Jobs) or Pods whose number depends on nodes
(DaemonSets).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from argosy.errors import ArgosyError
from argosy.gitops.analysis.repository import Item
from argosy.kube.schema import quantity

SERVICE: Final = ("serving.kserve.io", "InferenceService")
RUNTIMES: Final = ("ServingRuntime", "ClusterServingRuntime")
COMPONENTS: Final = ("predictor", "transformer", "explainer")
AUTOSCALER: Final = ("autoscaling", "HorizontalPodAutoscaler")
_TEMPLATE: Final = ("spec", "template", "spec")
_LASTING: Final = {
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("argoproj.io", "Rollout"): _TEMPLATE,
    ("serving.kserve.io", "LLMInferenceService"): ("spec", "template"),
    ("", "Pod"): ("spec",),
}
_ZERO: Final = Decimal(0)


class Amount(NamedTuple):
    cpu: Decimal = _ZERO
    memory: Decimal = _ZERO
    gpu: Decimal = _ZERO

    def plus(self, other: Amount, times: int = 1) -> Amount:
        return Amount(*(mine + theirs * times for mine, theirs in zip(self, other, strict=True)))

    def words(self) -> list[str]:
        """Render `CPU +1`, `memory -2Gi`, `GPU ±0`; CPU and GPU are always shown because people look for them."""
        memory = [f"memory {signed(self.memory, is_binary=True)}"] if self.memory else []
        return [f"CPU {signed(self.cpu)}", *memory, f"GPU {signed(self.gpu)}"]


def signed(value: Decimal, *, is_binary: bool = False) -> str:
    if not value:
        return "±0"
    text = str(quantity.Quantity(abs(value), "binary" if is_binary else "decimal"))
    return f"{'+' if value > 0 else '-'}{text}"


class Asked(NamedTuple):
    """Requested resources with minimum and with maximum replicas."""

    least: Amount = Amount()
    most: Amount = Amount()


def asked(items: Iterable[Item]) -> Asked:
    known = list(items)
    runtimes = {item.key.name: item for item in known if item.key.kind in RUNTIMES}
    scaled = {_scaled(item): bounds(item) for item in known if item.kind == AUTOSCALER}
    least = most = Amount()
    for item in known:
        for amount, low, high in _of(item, runtimes, scaled):
            least, most = least.plus(amount, low), most.plus(amount, high)
    return Asked(least, most)


def _scaled(autoscaler: Item) -> tuple[str, str, str]:
    target = ("spec", "scaleTargetRef")
    return autoscaler.key.namespace, autoscaler.text(*target, "kind"), autoscaler.text(*target, "name")


def bounds(autoscaler: Item) -> tuple[int, int]:
    """k8s: an autoscaler keeps one replica if minReplicas is not set."""
    return scale(autoscaler.fields("spec"))


def _of(
    item: Item, runtimes: Mapping[str, Item], scaled: Mapping[tuple[str, str, str], tuple[int, int]]
) -> Iterable[tuple[Amount, int, int]]:
    if item.kind in _LASTING:
        count = replicas(item)
        # k8s: an autoscaler decides, unless replicas is 0.
        known = scaled.get((item.key.namespace, item.key.kind, item.key.name)) if count else None
        yield _of_pod(item.fields(*_LASTING[item.kind])), *(known or (count, count))
    elif item.kind == SERVICE:
        for component in COMPONENTS:
            if spec := item.fields("spec", component):
                low, high = scale(spec)
                yield _of_component(spec, runtimes), low, high


def replicas(item: Item) -> int:
    given = 1 if item.kind == ("", "Pod") else item.value("spec", "replicas")
    return given if isinstance(given, int) else 1


def scale(component: Mapping[str, Any]) -> tuple[int, int]:
    """k8s: KServe keeps one replica if minReplicas is not set, and none if it is 0."""
    low, high = component.get("minReplicas"), component.get("maxReplicas")
    least = low if isinstance(low, int) else 1
    return least, max(least, high if isinstance(high, int) else 0)


def _of_component(spec: Mapping[str, Any], runtimes: Mapping[str, Item]) -> Amount:
    amount = _of_pod(spec)
    for part in spec.values():
        if isinstance(part, dict) and isinstance(part.get("resources"), dict):
            amount = amount.plus(_of_container(part))
    model = spec.get("model")
    if isinstance(model, dict) and not model.get("resources") and (item := runtimes.get(str(model.get("runtime")))):
        amount = amount.plus(_of_pod(item.fields("spec")))
    return amount


def _of_pod(spec: Mapping[str, Any]) -> Amount:
    """k8s: containers and sidecars add up; init containers count as the largest one of them."""
    together, before = Amount(), Amount()
    for each in _dicts(spec.get("containers")):
        together = together.plus(_of_container(each))
    for each in _dicts(spec.get("initContainers")):
        if each.get("restartPolicy") == "Always":
            together = together.plus(_of_container(each))
        else:
            before = Amount(*map(max, before, _of_container(each)))
    return Amount(*map(max, together, before))


def _of_container(container: Mapping[str, Any]) -> Amount:
    given = container.get("resources")
    resources = given if isinstance(given, dict) else {}
    limits, requests = (_amounts(resources.get(name)) for name in ("limits", "requests"))
    asks = {**limits, **requests}  # k8s: the limit is the default request
    gpus = sum((value for name, value in asks.items() if name.endswith("/gpu") or ".com/mig-" in name), _ZERO)
    return Amount(asks.get("cpu", _ZERO), asks.get("memory", _ZERO), gpus)


def _amounts(given: Any) -> dict[str, Decimal]:
    found = {}
    for name, value in given.items() if isinstance(given, dict) else ():
        try:
            found[str(name)] = quantity.parse(value)
        except (ArgosyError, TypeError, ValueError, AttributeError):
            continue  # reported by the schema rules
    return found


def _dicts(given: Any) -> list[dict[str, Any]]:
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
