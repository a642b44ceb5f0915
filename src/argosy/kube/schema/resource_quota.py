"""ResourceQuota: computes the usage of an object and the message if it exceeds a quota.

In: manifests. Out: amounts by quota resource name, and refusals worded as the server words them. Never: does I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.kube.schema import pod_resources, quantity
from argosy.kube.schema.pod_resources import ZERO_AMOUNT, Amounts

FINISHED_POD_PHASES: Final = ("Succeeded", "Failed")
STORAGE_CLASS_SUFFIX: Final = ".storageclass.storage.k8s.io/"
COUNTED_CORE_RESOURCES: Final = (
    "configmaps", "secrets", "services", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas",
)  # fmt: skip
REQUIRED_COMPUTE_RESOURCES: Final = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
ONE: Final = Decimal(1)


def count_usage(group: str, plural: str, manifest: Manifest) -> Amounts:
    """Return the usage of an object under every quota resource name, whether a quota limits it or not."""
    used: Amounts = {f"count/{plural}.{group}" if group else f"count/{plural}": ONE}
    if group:
        return used
    if plural in COUNTED_CORE_RESOURCES:
        used[plural] = ONE
    match plural:
        case "pods" if (manifest.get("status") or {}).get("phase") not in FINISHED_POD_PHASES:
            used |= {"pods": ONE, **_pod_usage(manifest.get("spec") or {})}
        case "persistentvolumeclaims":
            used |= _claim_usage(manifest.get("spec") or {})
        case "services":
            used |= _service_usage(manifest.get("spec") or {})
    return used


def _pod_usage(spec: Mapping[str, Any]) -> Amounts:
    requests, limits = pod_resources.sum_requests(spec), pod_resources.sum_limits(spec)
    unprefixed: Amounts = {name: requests[name] for name in ("cpu", "memory", "ephemeral-storage") if name in requests}
    prefixed_requests = {f"requests.{name}": amount for name, amount in requests.items()}
    return {**unprefixed, **prefixed_requests, **{f"limits.{name}": amount for name, amount in limits.items()}}


def _claim_usage(spec: Mapping[str, Any]) -> Amounts:
    requested = pod_resources.read_amounts((spec.get("resources") or {}).get("requests")).get("storage", ZERO_AMOUNT)
    usage: Amounts = {"requests.storage": requested}
    if name := spec.get("storageClassName"):
        usage |= {
            f"{name}{STORAGE_CLASS_SUFFIX}requests.storage": requested,
            f"{name}{STORAGE_CLASS_SUFFIX}persistentvolumeclaims": ONE,
        }
    return usage


def _service_usage(spec: Mapping[str, Any]) -> Amounts:
    ports = Decimal(sum(1 for port in spec.get("ports") or () if port.get("nodePort")))
    usage = {"services.nodeports": ports} if ports else {}
    return {**usage, "services.loadbalancers": ONE} if spec.get("type") == "LoadBalancer" else usage


# -- which objects a quota matches -----------------------------------------------------------------------------------


def quota_matches(quota: Manifest, plural: str, manifest: Manifest) -> bool:
    """k8s: a quota with scopes counts only Pods that match all of them."""
    scopes = list(_read_scopes(quota.get("spec") or {}))
    if not scopes:
        return True
    return plural == "pods" and all(_pod_matches_scope(manifest.get("spec") or {}, *scope) for scope in scopes)


def _read_scopes(spec: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    for scope in spec.get("scopes") or ():
        yield str(scope), "Exists", []
    for term in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        yield str(term["scopeName"]), str(term["operator"]), list(term.get("values") or ())


def _pod_matches_scope(pod: Mapping[str, Any], scope: str, operator: str, values: list[str]) -> bool:
    match scope:
        case "Terminating" | "NotTerminating":
            return (pod.get("activeDeadlineSeconds") is not None) == (scope == "Terminating")
        case "BestEffort" | "NotBestEffort":
            resources = {**pod_resources.sum_requests(pod), **pod_resources.sum_limits(pod)}
            return bool({"cpu", "memory"} & resources.keys()) == (scope == "NotBestEffort")
        case "PriorityClass":
            name = str(pod.get("priorityClassName") or "")
            result_by_operator = {
                "Exists": bool(name),
                "DoesNotExist": not name,
                "In": name in values,
                "NotIn": name not in values,
            }
            return result_by_operator.get(operator, False)
    return False


# -- refusals --------------------------------------------------------------------------------------------------------


def find_refusal(quota: Manifest, manifest: Manifest, requested: Amounts, used: Mapping[str, Decimal]) -> str:
    """Return why this quota refuses the object, or "" if it does not."""
    hard, name = (quota.get("spec") or {}).get("hard") or {}, quota["metadata"]["name"]
    if "pods" in requested and (missing := _find_missing_requests(manifest, hard)):
        return f"failed quota: {name}: must specify {missing}"
    limits = pod_resources.read_amounts(hard)
    exceeded = sorted(
        resource_name
        for resource_name, limit in limits.items()
        if requested.get(resource_name) and used.get(resource_name, ZERO_AMOUNT) + requested[resource_name] > limit
    )
    if not exceeded:
        return ""
    parts: list[tuple[str, Mapping[str, Decimal]]] = [("requested", requested), ("used", used), ("limited", limits)]
    parts_text = [
        f"{word}: " + ",".join(f"{key}={format_amount(amounts.get(key, ZERO_AMOUNT), hard[key])}" for key in exceeded)
        for word, amounts in parts
    ]
    return f"exceeded quota: {name}, {', '.join(parts_text)}"


def format_amount(amount: Decimal, quota_value: str) -> str:
    """Format an amount in the notation (suffix style) of the quota's value."""
    return str(quantity.Quantity(amount, quantity.read(str(quota_value)).style))


def _find_missing_requests(pod: Manifest, hard: Mapping[str, Any]) -> str:
    """k8s: if a quota limits CPU or memory, every container must specify them."""
    missing = []
    spec = pod.get("spec") or {}
    for name in sorted(container for container in hard if container in REQUIRED_COMPUTE_RESOURCES):
        prefix, _, resource_name = name.rpartition(".")
        field = prefix or "requests"
        names = [
            str(container["name"])
            for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
            if resource_name not in ((container.get("resources") or {}).get(field) or {})
        ]
        if names:
            missing.append(f"{name} for: {','.join(names)}")
    return "; ".join(missing)
