"""Sums the resource requests and limits of a Pod: CPU, memory and extended resources.

In: the spec of a Pod. Out: amounts by resource name. Never: guesses: an invalid quantity is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from argosy.errors import ManifestError
from argosy.kube.schema import quantity

Amounts = dict[str, Decimal]
ZERO_AMOUNT: Final = Decimal(0)


def sum_requests(spec: Mapping[str, Any]) -> Amounts:
    """k8s: a container with a limit and no request requests its limit."""
    return _sum_containers(
        spec, lambda container: {**_container_amounts(container, "limits"), **_container_amounts(container, "requests")}
    )


def sum_limits(spec: Mapping[str, Any]) -> Amounts:
    return _sum_containers(spec, lambda container: _container_amounts(container, "limits"))


def read_amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    amounts: Amounts = {}
    for name, text in (quantities or {}).items():
        try:
            amounts[name] = quantity.parse(text)
        except ManifestError:
            continue
    return amounts


def add_amounts(left: Mapping[str, Decimal], right: Mapping[str, Decimal]) -> Amounts:
    return {name: left.get(name, ZERO_AMOUNT) + right.get(name, ZERO_AMOUNT) for name in {**left, **right}}


def subtract_amounts(whole: Mapping[str, Decimal], part: Mapping[str, Decimal]) -> Amounts:
    return {name: whole.get(name, ZERO_AMOUNT) - part.get(name, ZERO_AMOUNT) for name in {**whole, **part}}


def _sum_containers(spec: Mapping[str, Any], read_container: Any) -> Amounts:
    """k8s: init containers run one at a time, before the main containers and next to sidecars that started earlier."""
    sidecars: Amounts = {}
    init_peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars = add_amounts(sidecars, read_container(container))
            init_peak = _max_amounts(init_peak, sidecars)
        else:
            init_peak = _max_amounts(init_peak, add_amounts(sidecars, read_container(container)))
    total = sidecars
    for container in spec.get("containers") or ():
        total = add_amounts(total, read_container(container))
    return add_amounts(_max_amounts(init_peak, total), read_amounts(spec.get("overhead")))


def _container_amounts(container: Mapping[str, Any], field: str) -> Amounts:
    return read_amounts((container.get("resources") or {}).get(field))


def _max_amounts(left: Mapping[str, Decimal], right: Mapping[str, Decimal]) -> Amounts:
    names: Iterable[str] = {**left, **right}
    return {name: max(left.get(name, ZERO_AMOUNT), right.get(name, ZERO_AMOUNT)) for name in names}
