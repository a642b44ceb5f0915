"""Validates Ingresses, NetworkPolicies and EndpointSlices."""

from __future__ import annotations

from argosy.kube.schema import name_label_address_syntax
from argosy.kube.schema.field_error import forbidden, format_go_value, invalid, not_supported_unsorted, required
from argosy.kube.schema.validation.containers import PROTOCOLS
from argosy.kube.schema.validation.shared_field_checks import (
    FieldErrors,
    ManifestPart,
    check_immutable,
    check_label_selector,
    check_port,
    check_port_number,
    check_required_name,
    check_syntax,
    iterate_items,
)

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_IN_PATH = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_PATH_ENDS = ("/..", "/.")


def validate_ingress(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = manifest.get("spec") or {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        value_text = "[]networking.IngressRule(nil)"
        errors.append(invalid("spec", value_text, "either `defaultBackend` or `rules` must be specified"))
    if spec.get("defaultBackend") is not None:
        _validate_backend(errors, "spec.defaultBackend", spec["defaultBackend"])
    for field, rule in iterate_items(spec, "rules", "spec"):
        host = rule.get("host") or ""
        if host:
            if name_label_address_syntax.is_ip(host):
                errors.append(invalid(f"{field}.host", format_go_value(host), "must be a DNS name, not an IP address"))
            _check_host(errors, f"{field}.host", host)
        if rule.get("http") is not None:
            _validate_paths(errors, f"{field}.http", rule["http"])
    for field, entry in iterate_items(spec, "tls", "spec"):
        for index, host in enumerate(entry.get("hosts") or ()):
            _check_host(errors, f"{field}.hosts[{index}]", host)
        if entry.get("secretName"):
            check_syntax(
                errors, f"{field}.secretName", entry["secretName"], name_label_address_syntax.check_dns_subdomain
            )
    if spec.get("ingressClassName") is not None:
        check_syntax(
            errors, "spec.ingressClassName", spec["ingressClassName"], name_label_address_syntax.check_dns_subdomain
        )
    return errors


def validate_ingress_create(manifest: ManifestPart) -> FieldErrors:
    errors = validate_ingress(manifest)
    name = "kubernetes.io/ingress.class"
    value = ((manifest.get("metadata") or {}).get("annotations") or {}).get(name)
    class_name = (manifest.get("spec") or {}).get("ingressClassName")
    if value is not None and class_name is not None and value != class_name:
        detail = "must match `ingressClassName` when both are specified"
        errors.append(invalid(f"annotations.{name}", format_go_value(value), detail))
    return errors


def _check_host(errors: FieldErrors, field: str, host: str) -> None:
    check_syntax(
        errors,
        field,
        host,
        name_label_address_syntax.check_wildcard_subdomain
        if "*" in host
        else name_label_address_syntax.check_dns_subdomain,
    )


def _validate_paths(errors: FieldErrors, field: str, http: ManifestPart) -> None:
    if not http.get("paths"):
        errors.append(required(f"{field}.paths"))
    for path_field, http_path in iterate_items(http, "paths", field):
        path_type, path = http_path.get("pathType"), http_path.get("path") or ""
        if path_type is None:
            errors.append(required(f"{path_field}.pathType", "pathType must be specified"))
            continue
        if path_type not in _PATH_TYPES:
            errors.append(not_supported_unsorted(f"{path_field}.pathType", format_go_value(path_type), _PATH_TYPES))
        elif not path.startswith("/") and (path or path_type != "ImplementationSpecific"):
            errors.append(invalid(f"{path_field}.path", format_go_value(path), "must be an absolute path"))
        if path_type in ("Exact", "Prefix"):
            path_errors = [
                f"must not contain '{forbidden_text}'"
                for forbidden_text in _FORBIDDEN_IN_PATH
                if forbidden_text in path
            ]
            path_errors += [
                f"cannot end with '{forbidden_text}'"
                for forbidden_text in _FORBIDDEN_PATH_ENDS
                if path.endswith(forbidden_text)
            ]
            errors.extend(invalid(f"{path_field}.path", format_go_value(path), detail) for detail in path_errors)
        _validate_backend(errors, f"{path_field}.backend", http_path.get("backend") or {})


def _validate_backend(errors: FieldErrors, field: str, backend: ManifestPart) -> None:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        errors.append(invalid(field, '""', "cannot set both resource and service backends"))
    elif resource is not None:
        missing = [name_field for name_field in ("kind", "name") if not resource.get(name_field)]
        errors.extend(required(f"{field}.resource.{name_field}") for name_field in missing)
    elif service is None:
        errors.append(invalid(field, '""', "resource or service backend is required"))
    else:
        check_required_name(
            errors, f"{field}.service.name", service.get("name"), name_label_address_syntax.check_dns_1035_label
        )
        name, number = (service.get("port") or {}).get("name"), (service.get("port") or {}).get("number")
        if name and number:
            errors.append(invalid(field, '""', "cannot set both port name & port number"))
        elif name:
            check_syntax(errors, f"{field}.service.port.name", name, name_label_address_syntax.check_port_name)
        elif number:
            check_port_number(errors, f"{field}.service.port.number", number)
        else:
            errors.append(required(field, "port name or number is required"))


def validate_network_policy(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = manifest.get("spec") or {}
    check_label_selector(errors, "spec.podSelector", spec.get("podSelector"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule_path, rule in iterate_items(spec, direction, "spec"):
            for field, policy_port in iterate_items(rule, "ports", rule_path):
                _validate_policy_port(errors, field, policy_port)
            for field, peer in iterate_items(rule, peers, rule_path):
                _validate_peer(errors, field, peer)
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        if kind not in ("Ingress", "Egress"):
            errors.append(
                not_supported_unsorted(f"spec.policyTypes[{index}]", format_go_value(kind), ("Ingress", "Egress"))
            )
    return errors


def _validate_policy_port(errors: FieldErrors, field: str, policy_port: ManifestPart) -> None:
    protocol, number, end_port = policy_port.get("protocol"), policy_port.get("port"), policy_port.get("endPort")
    if protocol is not None and protocol not in PROTOCOLS:
        errors.append(not_supported_unsorted(f"{field}.protocol", format_go_value(protocol), ("TCP", "UDP", "SCTP")))
    if end_port is not None and not isinstance(number, int):
        detail = "is not specified" if number is None else "is non-numeric"
        errors.append(invalid(f"{field}.endPort", str(end_port), f"may not be specified when `port` {detail}"))
    if number is not None:
        check_port(errors, f"{field}.port", number)
    if end_port is None or not isinstance(number, int):
        return
    if end_port < number:
        errors.append(invalid(f"{field}.endPort", str(number), "must be greater than or equal to `port`"))
    check_port_number(errors, f"{field}.endPort", end_port)


def _validate_peer(errors: FieldErrors, field: str, peer: ManifestPart) -> None:
    kinds = [kind for kind in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(kind) is not None]
    for kind in kinds:
        if kind == "ipBlock":
            check_required_name(
                errors, f"{field}.ipBlock.cidr", peer[kind].get("cidr"), name_label_address_syntax.check_cidr
            )
        else:
            check_label_selector(errors, f"{field}.{kind}", peer[kind])
    if not kinds:
        errors.append(required(field, "must specify a peer"))
    elif len(kinds) > 1 and "ipBlock" in kinds:
        errors.append(forbidden(field, "may not specify both ipBlock and another peer"))


def validate_endpoint_slice(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    address_type, address_types = manifest.get("addressType") or "", ("FQDN", "IPv4", "IPv6")
    if not address_type:
        errors.append(required("addressType"))
    elif address_type not in address_types:
        errors.append(not_supported_unsorted("addressType", format_go_value(address_type), address_types))
    for index, endpoint in enumerate(manifest.get("endpoints") or ()):
        if not endpoint.get("addresses"):
            errors.append(required(f"endpoints[{index}].addresses", "must contain at least 1 address"))
        elif address_type in ("IPv4", "IPv6"):
            for address_index, address in enumerate(endpoint["addresses"]):
                check_syntax(
                    errors,
                    f"endpoints[{index}].addresses[{address_index}]",
                    address,
                    name_label_address_syntax.check_ip_address,
                )
    return errors


def validate_address_type_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    check_immutable(errors, "addressType", manifest.get("addressType"), old.get("addressType"))
    return errors
