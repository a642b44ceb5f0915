"""Validates Services: ports, addresses, traffic policies."""

from __future__ import annotations

from argosy.kube.schema import name_label_address_syntax
from argosy.kube.schema.field_error import (
    duplicate,
    forbidden,
    format_go_value,
    invalid,
    not_supported_unsorted,
    required,
)
from argosy.kube.schema.validation import go_struct_format
from argosy.kube.schema.validation.containers import PROTOCOLS
from argosy.kube.schema.validation.shared_field_checks import (
    FieldErrors,
    ManifestPart,
    check_labels,
    check_port,
    check_port_number,
    check_required_choice,
    check_syntax,
    iterate_items,
)

_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_NODE_PORT_RANGE = range(30000, 32768)
_LOAD_BALANCER_ONLY_ERROR = "may only be used when `type` is 'LoadBalancer'"
_EXTERNAL_NAME_ERROR = "may not be set for ExternalName services"


def _read_cluster_ips(spec: ManifestPart) -> list[str]:
    addresses = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    return list(addresses)


def _is_headless(spec: ManifestPart) -> bool:
    return _read_cluster_ips(spec)[:1] == ["None"]


def validate_service(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = manifest.get("spec") or {}
    service_type = spec.get("type") or ""
    if not spec.get("ports") and not _is_headless(spec) and service_type != "ExternalName":
        errors.append(required("spec.ports"))
    _check_type_rules(errors, spec, service_type)
    _validate_ports(errors, spec)
    if spec.get("selector"):
        check_labels(errors, "spec.selector", spec["selector"])
    check_required_choice(errors, "spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    _validate_session_affinity(errors, spec)
    if service_type != "ExternalName":
        _validate_cluster_ips(errors, spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        syntax_check = (
            name_label_address_syntax.check_routable_ip
            if name_label_address_syntax.is_ip(address)
            else name_label_address_syntax.check_ip_address
        )
        check_syntax(errors, f"spec.externalIPs[{index}]", address, syntax_check)
    check_required_choice(errors, "spec.type", service_type, _SERVICE_TYPES)
    _validate_node_ports(errors, spec, service_type)
    _check_duplicate_ports(errors, spec)
    _validate_load_balancer(errors, spec, service_type)
    _validate_traffic_policies(errors, spec, service_type)
    return errors


def _check_type_rules(errors: FieldErrors, spec: ManifestPart, service_type: str) -> None:
    if service_type in ("LoadBalancer", "NodePort"):
        if service_type == "LoadBalancer":
            for field, port in iterate_items(spec, "ports", "spec"):
                if port.get("port") == 10250:
                    detail = "may not expose port 10250 externally since it is used by kubelet"
                    errors.append(invalid(field, "10250", detail))
        if _is_headless(spec):
            errors.append(
                invalid("spec.clusterIPs[0]", '"None"', f"may not be set to 'None' for {service_type} services")
            )
    elif service_type == "ExternalName":
        if _read_cluster_ips(spec):
            errors.append(forbidden("spec.clusterIPs", _EXTERNAL_NAME_ERROR))
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if spec.get(name):
                errors.append(forbidden(f"spec.{name}", _EXTERNAL_NAME_ERROR))
        name = str(spec.get("externalName") or "").removesuffix(".")
        if name:
            check_syntax(errors, "spec.externalName", name, name_label_address_syntax.check_dns_subdomain)
        else:
            errors.append(required("spec.externalName"))


def _validate_ports(errors: FieldErrors, spec: ManifestPart) -> None:
    names: set[str] = set()
    has_several_ports = len(spec.get("ports") or ()) > 1
    for field, service_port in iterate_items(spec, "ports", "spec"):
        name = service_port.get("name") or ""
        if name:
            check_syntax(errors, f"{field}.name", name, name_label_address_syntax.check_dns_label)
            if name in names:
                errors.append(duplicate(f"{field}.name", format_go_value(name)))
            names.add(name)
        elif has_several_ports:
            errors.append(required(f"{field}.name"))
        check_port_number(errors, f"{field}.port", service_port.get("port"))
        check_required_choice(errors, f"{field}.protocol", service_port.get("protocol"), PROTOCOLS)
        check_port(errors, f"{field}.targetPort", service_port.get("targetPort"))
        if service_port.get("appProtocol") is not None:
            check_syntax(
                errors,
                f"{field}.appProtocol",
                service_port["appProtocol"],
                name_label_address_syntax.check_qualified_name,
            )


def _validate_session_affinity(errors: FieldErrors, spec: ManifestPart) -> None:
    config = spec.get("sessionAffinityConfig")
    if spec.get("sessionAffinity") == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        if seconds is None:
            errors.append(required("spec.sessionAffinityConfig"))
        elif not 0 < seconds <= 86400:
            field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            errors.append(invalid(field, str(seconds), "must be greater than 0 and less than 86400"))


def _validate_cluster_ips(errors: FieldErrors, spec: ManifestPart) -> None:
    addresses = _read_cluster_ips(spec)
    if spec.get("clusterIP") and addresses[0] != spec["clusterIP"]:
        value_text = go_struct_format.format_string_list(addresses)
        errors.append(invalid("spec.clusterIPs", value_text, "first value must match `clusterIP`"))
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in ("IPv4", "IPv6"):
            errors.append(
                not_supported_unsorted(f"spec.ipFamilies[{index}]", format_go_value(family), ("IPv4", "IPv6"))
            )
    policy, policies = spec.get("ipFamilyPolicy"), ("PreferDualStack", "RequireDualStack", "SingleStack")
    if policy is not None and policy not in policies:
        errors.append(not_supported_unsorted("spec.ipFamilyPolicy", format_go_value(policy), policies))
    if addresses[:1] == ["None"] and len(addresses) > 1:
        detail = "'None' must be the first and only value"
        errors.append(invalid("spec.clusterIPs", go_struct_format.format_string_list(addresses), detail))
    for index, address in enumerate(addresses):
        if index or address != "None":
            check_syntax(errors, f"spec.clusterIPs[{index}]", address, name_label_address_syntax.check_ip_address)
    if len(addresses) > 2:
        errors.append(
            invalid("spec.clusterIPs", go_struct_format.format_string_list(addresses), "may only hold up to 2 values")
        )


def _validate_node_ports(errors: FieldErrors, spec: ManifestPart, service_type: str) -> None:
    used_ports: set[tuple[object, object]] = set()
    for field, port in iterate_items(spec, "ports", "spec"):
        number = port.get("nodePort")
        if not number:
            continue
        if service_type == "ClusterIP":
            errors.append(forbidden(f"{field}.nodePort", "may not be used when `type` is 'ClusterIP'"))
        elif number not in _NODE_PORT_RANGE:
            detail = "provided port is not in the valid range. The range of valid ports is 30000-32767"
            errors.append(invalid(f"{field}.nodePort", str(number), detail))
        if (port.get("protocol"), number) in used_ports:
            errors.append(duplicate(f"{field}.nodePort", str(number)))
        used_ports.add((port.get("protocol"), number))


def _check_duplicate_ports(errors: FieldErrors, spec: ManifestPart) -> None:
    seen: set[tuple[str, int]] = set()
    for field, port in iterate_items(spec, "ports", "spec"):
        key = (port.get("protocol") or "", port.get("port") or 0)
        if key in seen:
            errors.append(duplicate(field, go_struct_format.format_service_port(*key)))
        seen.add(key)


def _validate_load_balancer(errors: FieldErrors, spec: ManifestPart, service_type: str) -> None:
    if spec.get("loadBalancerSourceRanges"):
        field = "spec.LoadBalancerSourceRanges"
        if service_type != "LoadBalancer":
            errors.append(forbidden(field, _LOAD_BALANCER_ONLY_ERROR))
        for index, value in enumerate(spec["loadBalancerSourceRanges"]):
            check_syntax(errors, f"{field}[{index}]", value.strip(), name_label_address_syntax.check_cidr)
    if spec.get("allocateLoadBalancerNodePorts") is not None and service_type != "LoadBalancer":
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", _LOAD_BALANCER_ONLY_ERROR))
    if spec.get("loadBalancerClass") is not None and service_type != "LoadBalancer":
        errors.append(forbidden("spec.loadBalancerClass", _LOAD_BALANCER_ONLY_ERROR))


def _validate_traffic_policies(errors: FieldErrors, spec: ManifestPart, service_type: str) -> None:
    is_external = service_type in ("NodePort", "LoadBalancer") or (
        service_type == "ClusterIP" and spec.get("externalIPs")
    )
    policy, field = spec.get("externalTrafficPolicy") or "", "spec.externalTrafficPolicy"
    if not is_external:
        if policy:
            errors.append(invalid(field, format_go_value(policy), "may only be set for externally-accessible services"))
    else:
        check_required_choice(errors, field, policy, ("Cluster", "Local"))
    if spec.get("healthCheckNodePort") and not (service_type == "LoadBalancer" and policy == "Local"):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid("spec.healthCheckNodePort", str(spec["healthCheckNodePort"]), detail))
    internal_policy = spec.get("internalTrafficPolicy")
    if internal_policy is not None and internal_policy not in ("Cluster", "Local"):
        errors.append(
            not_supported_unsorted("spec.internalTrafficPolicy", format_go_value(internal_policy), ("Cluster", "Local"))
        )
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution != "PreferClose":
        errors.append(
            not_supported_unsorted("spec.trafficDistribution", format_go_value(distribution), ("PreferClose",))
        )


def validate_service_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec, old_spec = manifest.get("spec") or {}, old.get("spec") or {}
    has_external_name = "ExternalName" in (spec.get("type"), old_spec.get("type"))
    if not has_external_name and not (_is_headless(spec) and _is_headless(old_spec)):
        new_addresses, old_addresses = _read_cluster_ips(spec), _read_cluster_ips(old_spec)
        value_text = go_struct_format.format_string_list(new_addresses)
        if old_addresses and not new_addresses:
            errors.append(invalid("spec.clusterIPs[0]", "[]string(nil)", "primary clusterIP can not be unset"))
        elif len(new_addresses) == len(old_addresses):
            changed = [index for index, pair in enumerate(zip(old_addresses, new_addresses)) if pair[0] != pair[1]]
            errors.extend(
                invalid(f"spec.clusterIPs[{index}]", value_text, "may not change once set") for index in changed
            )
        elif old_addresses and new_addresses[0] != old_addresses[0]:
            errors.append(invalid("spec.clusterIPs[0]", value_text, "may not change once set"))
    return errors + validate_service(manifest)
