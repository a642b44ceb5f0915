"""Validates Ingresses, NetworkPolicies and EndpointSlices."""

from __future__ import annotations

from argosy.kube.schema import name_syntax
from argosy.kube.schema.field_error import forbidden, go_value, invalid, required, unsupported
from argosy.kube.schema.validation.checks import (
    Faults,
    Part,
    immutable,
    items,
    label_selector,
    matches,
    named,
    port,
    port_number,
)
from argosy.kube.schema.validation.containers import PROTOCOLS

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_IN_PATH = ("//", "/./", "/../", "%2f", "%2F")
_BAD_AT_END = ("/..", "/.")


def ingress(manifest: Part) -> Faults:
    faults: Faults = []
    spec = manifest.get("spec") or {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        shown = "[]networking.IngressRule(nil)"
        faults.append(invalid("spec", shown, "either `defaultBackend` or `rules` must be specified"))
    if spec.get("defaultBackend") is not None:
        _backend(faults, "spec.defaultBackend", spec["defaultBackend"])
    for field, rule in items(spec, "rules", "spec"):
        host = rule.get("host") or ""
        if host:
            if name_syntax.is_ip(host):
                faults.append(invalid(f"{field}.host", go_value(host), "must be a DNS name, not an IP address"))
            _host(faults, f"{field}.host", host)
        if rule.get("http") is not None:
            _paths(faults, f"{field}.http", rule["http"])
    for field, entry in items(spec, "tls", "spec"):
        for index, host in enumerate(entry.get("hosts") or ()):
            _host(faults, f"{field}.hosts[{index}]", host)
        if entry.get("secretName"):
            matches(faults, f"{field}.secretName", entry["secretName"], name_syntax.dns_subdomain)
    if spec.get("ingressClassName") is not None:
        matches(faults, "spec.ingressClassName", spec["ingressClassName"], name_syntax.dns_subdomain)
    return faults


def ingress_created(manifest: Part) -> Faults:
    faults = ingress(manifest)
    name = "kubernetes.io/ingress.class"
    value = ((manifest.get("metadata") or {}).get("annotations") or {}).get(name)
    chosen = (manifest.get("spec") or {}).get("ingressClassName")
    if value is not None and chosen is not None and value != chosen:
        words = "must match `ingressClassName` when both are specified"
        faults.append(invalid(f"annotations.{name}", go_value(value), words))
    return faults


def _host(faults: Faults, field: str, host: str) -> None:
    matches(faults, field, host, name_syntax.wildcard_subdomain if "*" in host else name_syntax.dns_subdomain)


def _paths(faults: Faults, field: str, http: Part) -> None:
    if not http.get("paths"):
        faults.append(required(f"{field}.paths"))
    for at, each in items(http, "paths", field):
        kind, path = each.get("pathType"), each.get("path") or ""
        if kind is None:
            faults.append(required(f"{at}.pathType", "pathType must be specified"))
            continue
        if kind not in _PATH_TYPES:
            faults.append(unsupported(f"{at}.pathType", go_value(kind), _PATH_TYPES))
        elif not path.startswith("/") and (path or kind != "ImplementationSpecific"):
            faults.append(invalid(f"{at}.path", go_value(path), "must be an absolute path"))
        if kind in ("Exact", "Prefix"):
            wrong = [f"must not contain '{bad}'" for bad in _BAD_IN_PATH if bad in path]
            wrong += [f"cannot end with '{bad}'" for bad in _BAD_AT_END if path.endswith(bad)]
            faults.extend(invalid(f"{at}.path", go_value(path), words) for words in wrong)
        _backend(faults, f"{at}.backend", each.get("backend") or {})


def _backend(faults: Faults, field: str, backend: Part) -> None:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        faults.append(invalid(field, '""', "cannot set both resource and service backends"))
    elif resource is not None:
        missing = [each for each in ("kind", "name") if not resource.get(each)]
        faults.extend(required(f"{field}.resource.{each}") for each in missing)
    elif service is None:
        faults.append(invalid(field, '""', "resource or service backend is required"))
    else:
        named(faults, f"{field}.service.name", service.get("name"), name_syntax.dns_1035_label)
        name, number = (service.get("port") or {}).get("name"), (service.get("port") or {}).get("number")
        if name and number:
            faults.append(invalid(field, '""', "cannot set both port name & port number"))
        elif name:
            matches(faults, f"{field}.service.port.name", name, name_syntax.port_name)
        elif number:
            port_number(faults, f"{field}.service.port.number", number)
        else:
            faults.append(required(field, "port name or number is required"))


def network_policy(manifest: Part) -> Faults:
    faults: Faults = []
    spec = manifest.get("spec") or {}
    label_selector(faults, "spec.podSelector", spec.get("podSelector"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for at, rule in items(spec, direction, "spec"):
            for field, each in items(rule, "ports", at):
                _policy_port(faults, field, each)
            for field, peer in items(rule, peers, at):
                _peer(faults, field, peer)
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        if kind not in ("Ingress", "Egress"):
            faults.append(unsupported(f"spec.policyTypes[{index}]", go_value(kind), ("Ingress", "Egress")))
    return faults


def _policy_port(faults: Faults, field: str, each: Part) -> None:
    protocol, number, end = each.get("protocol"), each.get("port"), each.get("endPort")
    if protocol is not None and protocol not in PROTOCOLS:
        faults.append(unsupported(f"{field}.protocol", go_value(protocol), ("TCP", "UDP", "SCTP")))
    if end is not None and not isinstance(number, int):
        words = "is not specified" if number is None else "is non-numeric"
        faults.append(invalid(f"{field}.endPort", str(end), f"may not be specified when `port` {words}"))
    if number is not None:
        port(faults, f"{field}.port", number)
    if end is None or not isinstance(number, int):
        return
    if end < number:
        faults.append(invalid(f"{field}.endPort", str(number), "must be greater than or equal to `port`"))
    port_number(faults, f"{field}.endPort", end)


def _peer(faults: Faults, field: str, peer: Part) -> None:
    kinds = [kind for kind in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(kind) is not None]
    for kind in kinds:
        if kind == "ipBlock":
            named(faults, f"{field}.ipBlock.cidr", peer[kind].get("cidr"), name_syntax.cidr)
        else:
            label_selector(faults, f"{field}.{kind}", peer[kind])
    if not kinds:
        faults.append(required(field, "must specify a peer"))
    elif len(kinds) > 1 and "ipBlock" in kinds:
        faults.append(forbidden(field, "may not specify both ipBlock and another peer"))


def endpoint_slice(manifest: Part) -> Faults:
    faults: Faults = []
    kind, known = manifest.get("addressType") or "", ("FQDN", "IPv4", "IPv6")
    if not kind:
        faults.append(required("addressType"))
    elif kind not in known:
        faults.append(unsupported("addressType", go_value(kind), known))
    for index, endpoint in enumerate(manifest.get("endpoints") or ()):
        if not endpoint.get("addresses"):
            faults.append(required(f"endpoints[{index}].addresses", "must contain at least 1 address"))
        elif kind in ("IPv4", "IPv6"):
            for at, address in enumerate(endpoint["addresses"]):
                matches(faults, f"endpoints[{index}].addresses[{at}]", address, name_syntax.ip_address)
    return faults


def address_type_changed(manifest: Part, old: Part) -> Faults:
    faults: Faults = []
    immutable(faults, "addressType", manifest.get("addressType"), old.get("addressType"))
    return faults
