"""ResourceQuota: computes the usage of an object and the message if it exceeds a quota.

In: manifests. Out: amounts by quota resource name, and refusals worded as the server words them. Never: does I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.kube.schema import pod_resources, quantity
from argosy.kube.schema.pod_resources import NOTHING, Amounts

FINISHED: Final = ("Succeeded", "Failed")
CLASS: Final = ".storageclass.storage.k8s.io/"
PLAIN: Final = (
    "configmaps", "secrets", "services", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas",
)  # fmt: skip
MUST_SAY: Final = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
ONE: Final = Decimal(1)


def usage_of(group: str, plural: str, manifest: Manifest) -> Amounts:
    """Return the usage of an object under every quota resource name, whether a quota limits it or not."""
    used: Amounts = {f"count/{plural}.{group}" if group else f"count/{plural}": ONE}
    if group:
        return used
    if plural in PLAIN:
        used[plural] = ONE
    match plural:
        case "pods" if (manifest.get("status") or {}).get("phase") not in FINISHED:
            used |= {"pods": ONE, **_computing(manifest.get("spec") or {})}
        case "persistentvolumeclaims":
            used |= _storage(manifest.get("spec") or {})
        case "services":
            used |= _serving(manifest.get("spec") or {})
    return used


def _computing(spec: Mapping[str, Any]) -> Amounts:
    requests, limits = pod_resources.requests_of(spec), pod_resources.limits_of(spec)
    short: Amounts = {name: requests[name] for name in ("cpu", "memory", "ephemeral-storage") if name in requests}
    asked = {f"requests.{name}": much for name, much in requests.items()}
    return {**short, **asked, **{f"limits.{name}": much for name, much in limits.items()}}


def _storage(spec: Mapping[str, Any]) -> Amounts:
    asked = pod_resources.read_amounts((spec.get("resources") or {}).get("requests")).get("storage", NOTHING)
    found: Amounts = {"requests.storage": asked}
    if name := spec.get("storageClassName"):
        found |= {f"{name}{CLASS}requests.storage": asked, f"{name}{CLASS}persistentvolumeclaims": ONE}
    return found


def _serving(spec: Mapping[str, Any]) -> Amounts:
    ports = Decimal(sum(1 for each in spec.get("ports") or () if each.get("nodePort")))
    found = {"services.nodeports": ports} if ports else {}
    return {**found, "services.loadbalancers": ONE} if spec.get("type") == "LoadBalancer" else found


# -- which objects a quota matches -----------------------------------------------------------------------------------


def is_about(quota: Manifest, plural: str, manifest: Manifest) -> bool:
    """k8s: a quota with scopes counts only Pods that match all of them."""
    scopes = list(_scopes(quota.get("spec") or {}))
    if not scopes:
        return True
    return plural == "pods" and all(_is_in(manifest.get("spec") or {}, *each) for each in scopes)


def _scopes(spec: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    for each in spec.get("scopes") or ():
        yield str(each), "Exists", []
    for term in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        yield str(term["scopeName"]), str(term["operator"]), list(term.get("values") or ())


def _is_in(pod: Mapping[str, Any], scope: str, operator: str, values: list[str]) -> bool:
    match scope:
        case "Terminating" | "NotTerminating":
            return (pod.get("activeDeadlineSeconds") is not None) == (scope == "Terminating")
        case "BestEffort" | "NotBestEffort":
            asks = {**pod_resources.requests_of(pod), **pod_resources.limits_of(pod)}
            return bool({"cpu", "memory"} & asks.keys()) == (scope == "NotBestEffort")
        case "PriorityClass":
            name = str(pod.get("priorityClassName") or "")
            found = {"Exists": bool(name), "DoesNotExist": not name, "In": name in values, "NotIn": name not in values}
            return found.get(operator, False)
    return False


# -- refusals --------------------------------------------------------------------------------------------------------


def refusal(quota: Manifest, manifest: Manifest, asked: Amounts, used: Mapping[str, Decimal]) -> str:
    """Return why this quota refuses the object, or "" if it does not."""
    hard, name = (quota.get("spec") or {}).get("hard") or {}, quota["metadata"]["name"]
    if "pods" in asked and (silent := _silent(manifest, hard)):
        return f"failed quota: {name}: must specify {silent}"
    limits = pod_resources.read_amounts(hard)
    over = sorted(
        each for each, limit in limits.items() if asked.get(each) and used.get(each, NOTHING) + asked[each] > limit
    )
    if not over:
        return ""
    parts: list[tuple[str, Mapping[str, Decimal]]] = [("requested", asked), ("used", used), ("limited", limits)]
    told = [
        f"{word}: {','.join(f'{each}={shown(amounts.get(each, NOTHING), hard[each])}' for each in over)}"
        for word, amounts in parts
    ]
    return f"exceeded quota: {name}, {', '.join(told)}"


def shown(much: Decimal, like: str) -> str:
    """Format an amount in the notation (suffix style) of the quota's value."""
    return str(quantity.Quantity(much, quantity.read(str(like)).style))


def _silent(pod: Manifest, hard: Mapping[str, Any]) -> str:
    """k8s: if a quota limits CPU or memory, every container must specify them."""
    missing = []
    spec = pod.get("spec") or {}
    for name in sorted(each for each in hard if each in MUST_SAY):
        which, _, what = name.rpartition(".")
        field = which or "requests"
        names = [
            str(each["name"])
            for each in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
            if what not in ((each.get("resources") or {}).get(field) or {})
        ]
        if names:
            missing.append(f"{name} for: {','.join(names)}")
    return "; ".join(missing)
