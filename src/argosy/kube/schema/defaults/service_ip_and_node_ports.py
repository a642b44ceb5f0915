"""Sets the cluster IPs and node ports of a Service, and keeps them on updates.

In: a defaulted Service, a free cluster IP and a source of node ports. Out: the Service with them.
Never: tracks which addresses and ports are in use; the server does.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy.kube.schema.defaults.missing_field_defaults import ManifestPart, set_defaults, update_items

_ADDRESS_FIELDS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def has_type_with_cluster_ip(spec: ManifestPart) -> bool:
    return spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")


def needs_node_ports(spec: ManifestPart) -> bool:
    if spec.get("type") == "LoadBalancer":
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def needs_health_check_port(spec: ManifestPart) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def allocate_service(
    manifest: ManifestPart, cluster_ip: str, next_node_port: Callable[[], int] | None = None
) -> ManifestPart:
    """Set the missing cluster IP and node ports. Existing values are kept; an ExternalName gets none."""
    spec = dict(manifest["spec"])
    if not has_type_with_cluster_ip(spec):
        return manifest
    if not spec.get("clusterIP"):
        spec["clusterIP"] = (spec.get("clusterIPs") or [cluster_ip])[0]
    if not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    _set_ip_families(spec)
    if next_node_port is not None:
        if needs_node_ports(spec):
            _allocate_node_ports(spec, next_node_port)
        if needs_health_check_port(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = next_node_port()
    return {**manifest, "spec": spec}


def _set_ip_families(spec: ManifestPart) -> None:
    # k8s: a headless Service without a selector may have endpoints of any family, so it is dual-stack
    is_headless_without_selector = spec["clusterIP"] == "None" and not spec.get("selector")
    set_defaults(spec, (("ipFamilyPolicy", "RequireDualStack" if is_headless_without_selector else "SingleStack"),))
    families = list(spec.get("ipFamilies") or ())
    if not families:
        families = ["IPv6" if ":" in address else "IPv4" for address in spec["clusterIPs"]]
    if is_headless_without_selector and len(families) == 1 and spec["ipFamilyPolicy"] != "SingleStack":
        families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    spec["ipFamilies"] = families


def _allocate_node_ports(spec: ManifestPart, next_node_port: Callable[[], int]) -> None:
    node_port_by_port: dict[object, int] = {}
    for port in spec.get("ports") or ():
        if port.get("nodePort"):
            node_port_by_port.setdefault(port.get("port"), port["nodePort"])

    def with_node_port(port: ManifestPart) -> ManifestPart:
        if port.get("nodePort"):
            return port
        number = port.get("port")
        if number not in node_port_by_port:
            node_port_by_port[number] = next_node_port()
        return {**port, "nodePort": node_port_by_port[number]}

    update_items(spec, "ports", with_node_port)


def keep_allocated_fields(manifest: ManifestPart, old: ManifestPart) -> ManifestPart:
    """Keep allocated fields that an update omits; drop those that no longer apply after a change of type."""
    spec, old_spec = dict(manifest.get("spec") or {}), old.get("spec") or {}
    if spec.get("clusterIP") != old_spec.get("clusterIP") and spec.get("clusterIPs") == old_spec.get("clusterIPs"):
        # k8s: a change of clusterIP alone also replaces the list
        spec["clusterIPs"] = [spec["clusterIP"]] if spec.get("clusterIP") else []
    if has_type_with_cluster_ip(spec) and has_type_with_cluster_ip(old_spec):
        for name in ("clusterIP", "clusterIPs"):
            if not spec.get(name) and old_spec.get(name):
                spec[name] = old_spec[name]
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if not spec.get(name) and old_spec.get(name):
                spec[name] = old_spec[name]
    elif has_type_with_cluster_ip(old_spec):
        for name in _ADDRESS_FIELDS:
            if spec.get(name) == old_spec.get(name):
                spec.pop(name, None)
    _keep_node_ports(spec, old_spec)
    if needs_health_check_port(old_spec):
        if not needs_health_check_port(spec):
            if spec.get("healthCheckNodePort") == old_spec.get("healthCheckNodePort"):
                spec.pop("healthCheckNodePort", None)
        elif not spec.get("healthCheckNodePort") and old_spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = old_spec["healthCheckNodePort"]
    if old_spec.get("type") == "LoadBalancer" != spec.get("type"):
        for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if spec.get(name) == old_spec.get(name):
                spec.pop(name, None)
    _drop_external_traffic_policy(spec, old_spec)
    return {**manifest, "spec": spec}


def _keep_node_ports(spec: ManifestPart, old_spec: ManifestPart) -> None:
    if not _uses_node_ports(old_spec):
        return
    old_node_ports = {port.get("name"): port.get("nodePort") for port in old_spec.get("ports") or ()}
    new_node_ports = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
    if _uses_node_ports(spec):

        def carried(port: ManifestPart) -> ManifestPart:
            number = old_node_ports.get(port.get("name"))
            if port.get("nodePort") or not number or number in new_node_ports:
                return port
            return {**port, "nodePort": number}

        update_items(spec, "ports", carried)
    elif new_node_ports <= {number for number in old_node_ports.values() if number}:
        update_items(spec, "ports", lambda port: {name: value for name, value in port.items() if name != "nodePort"})


def _uses_node_ports(spec: ManifestPart) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def _drop_external_traffic_policy(spec: ManifestPart, old_spec: ManifestPart) -> None:
    def outside(each_spec: ManifestPart) -> bool:
        external = each_spec.get("type") == "ClusterIP" and each_spec.get("externalIPs")
        return bool(_uses_node_ports(each_spec) or external)

    is_unchanged = spec.get("externalTrafficPolicy") == old_spec.get("externalTrafficPolicy")
    if outside(old_spec) and not outside(spec) and is_unchanged:
        spec.pop("externalTrafficPolicy", None)
