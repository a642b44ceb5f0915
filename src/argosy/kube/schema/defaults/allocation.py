"""Sets the cluster IPs and node ports of a Service, and keeps them on updates.

In: a defaulted Service, a free cluster IP and a source of node ports. Out: the Service with them.
Never: tracks which addresses and ports are in use; the server does.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy.kube.schema.defaults.fill import Part, each, fill

_ADDRESS_FIELDS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def wants_address(spec: Part) -> bool:
    return spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")


def wants_node_ports(spec: Part) -> bool:
    if spec.get("type") == "LoadBalancer":
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def wants_check_port(spec: Part) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def allocate_service(manifest: Part, cluster_ip: str, next_node_port: Callable[[], int] | None = None) -> Part:
    """Set the missing cluster IP and node ports. Existing values are kept; an ExternalName gets none."""
    spec = dict(manifest["spec"])
    if not wants_address(spec):
        return manifest
    if not spec.get("clusterIP"):
        spec["clusterIP"] = (spec.get("clusterIPs") or [cluster_ip])[0]
    if not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    _families(spec)
    if next_node_port is not None:
        if wants_node_ports(spec):
            _node_ports(spec, next_node_port)
        if wants_check_port(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = next_node_port()
    return {**manifest, "spec": spec}


def _families(spec: Part) -> None:
    # k8s: a headless Service without a selector may have endpoints of any family, so it is dual-stack
    unbound = spec["clusterIP"] == "None" and not spec.get("selector")
    fill(spec, (("ipFamilyPolicy", "RequireDualStack" if unbound else "SingleStack"),))
    families = list(spec.get("ipFamilies") or ())
    if not families:
        families = ["IPv6" if ":" in address else "IPv4" for address in spec["clusterIPs"]]
    if unbound and len(families) == 1 and spec["ipFamilyPolicy"] != "SingleStack":
        families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    spec["ipFamilies"] = families


def _node_ports(spec: Part, next_node_port: Callable[[], int]) -> None:
    taken: dict[object, int] = {}
    for port in spec.get("ports") or ():
        if port.get("nodePort"):
            taken.setdefault(port.get("port"), port["nodePort"])

    def with_node_port(port: Part) -> Part:
        if port.get("nodePort"):
            return port
        number = port.get("port")
        if number not in taken:
            taken[number] = next_node_port()
        return {**port, "nodePort": taken[number]}

    each(spec, "ports", with_node_port)


def carry_allocated(manifest: Part, old: Part) -> Part:
    """Keep allocated fields that an update omits; drop those that no longer apply after a change of type."""
    spec, before = dict(manifest.get("spec") or {}), old.get("spec") or {}
    if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
        # k8s: a change of clusterIP alone also replaces the list
        spec["clusterIPs"] = [spec["clusterIP"]] if spec.get("clusterIP") else []
    if wants_address(spec) and wants_address(before):
        for name in ("clusterIP", "clusterIPs"):
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    elif wants_address(before):
        for name in _ADDRESS_FIELDS:
            if spec.get(name) == before.get(name):
                spec.pop(name, None)
    _carry_ports(spec, before)
    if wants_check_port(before):
        if not wants_check_port(spec):
            if spec.get("healthCheckNodePort") == before.get("healthCheckNodePort"):
                spec.pop("healthCheckNodePort", None)
        elif not spec.get("healthCheckNodePort") and before.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = before["healthCheckNodePort"]
    if before.get("type") == "LoadBalancer" != spec.get("type"):
        for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if spec.get(name) == before.get(name):
                spec.pop(name, None)
    _drop_outside_policy(spec, before)
    return {**manifest, "spec": spec}


def _carry_ports(spec: Part, before: Part) -> None:
    if not _uses_node_ports(before):
        return
    known = {port.get("name"): port.get("nodePort") for port in before.get("ports") or ()}
    used = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
    if _uses_node_ports(spec):

        def carried(port: Part) -> Part:
            number = known.get(port.get("name"))
            if port.get("nodePort") or not number or number in used:
                return port
            return {**port, "nodePort": number}

        each(spec, "ports", carried)
    elif used <= {number for number in known.values() if number}:
        each(spec, "ports", lambda port: {name: value for name, value in port.items() if name != "nodePort"})


def _uses_node_ports(spec: Part) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def _drop_outside_policy(spec: Part, before: Part) -> None:
    def outside(each_spec: Part) -> bool:
        external = each_spec.get("type") == "ClusterIP" and each_spec.get("externalIPs")
        return bool(_uses_node_ports(each_spec) or external)

    same = spec.get("externalTrafficPolicy") == before.get("externalTrafficPolicy")
    if outside(before) and not outside(spec) and same:
        spec.pop("externalTrafficPolicy", None)
