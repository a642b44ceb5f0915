"""Validates Services: ports, addresses, traffic policies."""

from __future__ import annotations

from argosy.kube.schema import name_syntax
from argosy.kube.schema.field_error import duplicate, forbidden, go_value, invalid, required, unsupported
from argosy.kube.schema.validation import go_format
from argosy.kube.schema.validation.checks import (
    Faults,
    Part,
    items,
    labels,
    matches,
    one_of,
    port,
    port_number,
)
from argosy.kube.schema.validation.containers import PROTOCOLS

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_NODE_PORTS = range(30000, 32768)
_BALANCED_ONLY = "may only be used when `type` is 'LoadBalancer'"
_NOT_EXTERNAL = "may not be set for ExternalName services"


def _addresses(spec: Part) -> list[str]:
    found = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    return list(found)


def _headless(spec: Part) -> bool:
    return _addresses(spec)[:1] == ["None"]


def service(manifest: Part) -> Faults:
    faults: Faults = []
    spec = manifest.get("spec") or {}
    kind = spec.get("type") or ""
    if not spec.get("ports") and not _headless(spec) and kind != "ExternalName":
        faults.append(required("spec.ports"))
    _by_type(faults, spec, kind)
    _ports(faults, spec)
    if spec.get("selector"):
        labels(faults, "spec.selector", spec["selector"])
    one_of(faults, "spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    _affinity(faults, spec)
    if kind != "ExternalName":
        _cluster_ips(faults, spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        grammar = name_syntax.ordinary_ip if name_syntax.is_ip(address) else name_syntax.ip_address
        matches(faults, f"spec.externalIPs[{index}]", address, grammar)
    one_of(faults, "spec.type", kind, _TYPES)
    _node_ports(faults, spec, kind)
    _duplicates(faults, spec)
    _balancer(faults, spec, kind)
    _policies(faults, spec, kind)
    return faults


def _by_type(faults: Faults, spec: Part, kind: str) -> None:
    if kind in ("LoadBalancer", "NodePort"):
        if kind == "LoadBalancer":
            for field, each in items(spec, "ports", "spec"):
                if each.get("port") == 10250:
                    words = "may not expose port 10250 externally since it is used by kubelet"
                    faults.append(invalid(field, "10250", words))
        if _headless(spec):
            faults.append(invalid("spec.clusterIPs[0]", '"None"', f"may not be set to 'None' for {kind} services"))
    elif kind == "ExternalName":
        if _addresses(spec):
            faults.append(forbidden("spec.clusterIPs", _NOT_EXTERNAL))
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if spec.get(name):
                faults.append(forbidden(f"spec.{name}", _NOT_EXTERNAL))
        name = str(spec.get("externalName") or "").removesuffix(".")
        if name:
            matches(faults, "spec.externalName", name, name_syntax.dns_subdomain)
        else:
            faults.append(required("spec.externalName"))


def _ports(faults: Faults, spec: Part) -> None:
    names: set[str] = set()
    several = len(spec.get("ports") or ()) > 1
    for field, each in items(spec, "ports", "spec"):
        name = each.get("name") or ""
        if name:
            matches(faults, f"{field}.name", name, name_syntax.dns_label)
            if name in names:
                faults.append(duplicate(f"{field}.name", go_value(name)))
            names.add(name)
        elif several:
            faults.append(required(f"{field}.name"))
        port_number(faults, f"{field}.port", each.get("port"))
        one_of(faults, f"{field}.protocol", each.get("protocol"), PROTOCOLS)
        port(faults, f"{field}.targetPort", each.get("targetPort"))
        if each.get("appProtocol") is not None:
            matches(faults, f"{field}.appProtocol", each["appProtocol"], name_syntax.qualified_name)


def _affinity(faults: Faults, spec: Part) -> None:
    config = spec.get("sessionAffinityConfig")
    if spec.get("sessionAffinity") == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        if seconds is None:
            faults.append(required("spec.sessionAffinityConfig"))
        elif not 0 < seconds <= 86400:
            field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            faults.append(invalid(field, str(seconds), "must be greater than 0 and less than 86400"))


def _cluster_ips(faults: Faults, spec: Part) -> None:
    addresses = _addresses(spec)
    if spec.get("clusterIP") and addresses[0] != spec["clusterIP"]:
        shown = go_format.string_list(addresses)
        faults.append(invalid("spec.clusterIPs", shown, "first value must match `clusterIP`"))
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in ("IPv4", "IPv6"):
            faults.append(unsupported(f"spec.ipFamilies[{index}]", go_value(family), ("IPv4", "IPv6")))
    policy, policies = spec.get("ipFamilyPolicy"), ("PreferDualStack", "RequireDualStack", "SingleStack")
    if policy is not None and policy not in policies:
        faults.append(unsupported("spec.ipFamilyPolicy", go_value(policy), policies))
    if addresses[:1] == ["None"] and len(addresses) > 1:
        words = "'None' must be the first and only value"
        faults.append(invalid("spec.clusterIPs", go_format.string_list(addresses), words))
    for index, address in enumerate(addresses):
        if index or address != "None":
            matches(faults, f"spec.clusterIPs[{index}]", address, name_syntax.ip_address)
    if len(addresses) > 2:
        faults.append(invalid("spec.clusterIPs", go_format.string_list(addresses), "may only hold up to 2 values"))


def _node_ports(faults: Faults, spec: Part, kind: str) -> None:
    taken: set[tuple[object, object]] = set()
    for field, each in items(spec, "ports", "spec"):
        number = each.get("nodePort")
        if not number:
            continue
        if kind == "ClusterIP":
            faults.append(forbidden(f"{field}.nodePort", "may not be used when `type` is 'ClusterIP'"))
        elif number not in _NODE_PORTS:
            words = "provided port is not in the valid range. The range of valid ports is 30000-32767"
            faults.append(invalid(f"{field}.nodePort", str(number), words))
        if (each.get("protocol"), number) in taken:
            faults.append(duplicate(f"{field}.nodePort", str(number)))
        taken.add((each.get("protocol"), number))


def _duplicates(faults: Faults, spec: Part) -> None:
    seen: set[tuple[str, int]] = set()
    for field, each in items(spec, "ports", "spec"):
        key = (each.get("protocol") or "", each.get("port") or 0)
        if key in seen:
            faults.append(duplicate(field, go_format.service_port(*key)))
        seen.add(key)


def _balancer(faults: Faults, spec: Part, kind: str) -> None:
    if spec.get("loadBalancerSourceRanges"):
        field = "spec.LoadBalancerSourceRanges"
        if kind != "LoadBalancer":
            faults.append(forbidden(field, _BALANCED_ONLY))
        for index, value in enumerate(spec["loadBalancerSourceRanges"]):
            matches(faults, f"{field}[{index}]", value.strip(), name_syntax.cidr)
    if spec.get("allocateLoadBalancerNodePorts") is not None and kind != "LoadBalancer":
        faults.append(forbidden("spec.allocateLoadBalancerNodePorts", _BALANCED_ONLY))
    if spec.get("loadBalancerClass") is not None and kind != "LoadBalancer":
        faults.append(forbidden("spec.loadBalancerClass", _BALANCED_ONLY))


def _policies(faults: Faults, spec: Part, kind: str) -> None:
    outside = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs"))
    policy, field = spec.get("externalTrafficPolicy") or "", "spec.externalTrafficPolicy"
    if not outside:
        if policy:
            faults.append(invalid(field, go_value(policy), "may only be set for externally-accessible services"))
    else:
        one_of(faults, field, policy, ("Cluster", "Local"))
    if spec.get("healthCheckNodePort") and not (kind == "LoadBalancer" and policy == "Local"):
        words = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        faults.append(invalid("spec.healthCheckNodePort", str(spec["healthCheckNodePort"]), words))
    inside = spec.get("internalTrafficPolicy")
    if inside is not None and inside not in ("Cluster", "Local"):
        faults.append(unsupported("spec.internalTrafficPolicy", go_value(inside), ("Cluster", "Local")))
    spread = spec.get("trafficDistribution")
    if spread is not None and spread != "PreferClose":
        faults.append(unsupported("spec.trafficDistribution", go_value(spread), ("PreferClose",)))


def service_updated(manifest: Part, old: Part) -> Faults:
    faults: Faults = []
    spec, before = manifest.get("spec") or {}, old.get("spec") or {}
    external = "ExternalName" in (spec.get("type"), before.get("type"))
    if not external and not (_headless(spec) and _headless(before)):
        new, past = _addresses(spec), _addresses(before)
        shown = go_format.string_list(new)
        if past and not new:
            faults.append(invalid("spec.clusterIPs[0]", "[]string(nil)", "primary clusterIP can not be unset"))
        elif len(new) == len(past):
            changed = [index for index, pair in enumerate(zip(past, new)) if pair[0] != pair[1]]
            faults.extend(invalid(f"spec.clusterIPs[{index}]", shown, "may not change once set") for index in changed)
        elif past and new[0] != past[0]:
            faults.append(invalid("spec.clusterIPs[0]", shown, "may not change once set"))
    return faults + service(manifest)
