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
NOTHING: Final = Decimal(0)


def requests_of(spec: Mapping[str, Any]) -> Amounts:
    """k8s: a container with a limit and no request requests its limit."""
    return _whole(spec, lambda container: {**_amounts(container, "limits"), **_amounts(container, "requests")})


def limits_of(spec: Mapping[str, Any]) -> Amounts:
    return _whole(spec, lambda container: _amounts(container, "limits"))


def read_amounts(given: Mapping[str, Any] | None) -> Amounts:
    found: Amounts = {}
    for name, text in (given or {}).items():
        try:
            found[name] = quantity.parse(text)
        except ManifestError:
            continue
    return found


def added(left: Mapping[str, Decimal], right: Mapping[str, Decimal]) -> Amounts:
    return {name: left.get(name, NOTHING) + right.get(name, NOTHING) for name in {**left, **right}}


def taken_from(whole: Mapping[str, Decimal], part: Mapping[str, Decimal]) -> Amounts:
    return {name: whole.get(name, NOTHING) - part.get(name, NOTHING) for name in {**whole, **part}}


def _whole(spec: Mapping[str, Any], read: Any) -> Amounts:
    """k8s: init containers run one at a time, before the main containers and next to sidecars that started earlier."""
    sidecars: Amounts = {}
    most: Amounts = {}
    for each in spec.get("initContainers") or ():
        if each.get("restartPolicy") == "Always":
            sidecars = added(sidecars, read(each))
            most = _larger(most, sidecars)
        else:
            most = _larger(most, added(sidecars, read(each)))
    total = sidecars
    for each in spec.get("containers") or ():
        total = added(total, read(each))
    return added(_larger(most, total), read_amounts(spec.get("overhead")))


def _amounts(container: Mapping[str, Any], which: str) -> Amounts:
    return read_amounts((container.get("resources") or {}).get(which))


def _larger(left: Mapping[str, Decimal], right: Mapping[str, Decimal]) -> Amounts:
    names: Iterable[str] = {**left, **right}
    return {name: max(left.get(name, NOTHING), right.get(name, NOTHING)) for name in names}
