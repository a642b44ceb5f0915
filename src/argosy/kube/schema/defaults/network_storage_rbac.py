"""Defaults of network, storage, RBAC, webhook and API extension kinds."""

from __future__ import annotations

from collections.abc import Callable

from argosy.kube.schema.defaults.missing_field_defaults import (
    ManifestPart,
    copy_struct,
    copy_with_defaults,
    set_defaults,
    update_items,
    update_struct,
)
from argosy.kube.schema.quantity import canonicalize

_RBAC_GROUP = "rbac.authorization.k8s.io"
_BUDGET_COUNT_FIELDS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def _default_policy_rule_ports(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    update_items(defaulted, "ports", lambda port: copy_with_defaults(port, ("protocol", "TCP")))
    return defaulted


def default_network_policy(manifest: ManifestPart) -> ManifestPart:
    spec = copy_struct(manifest, "spec")
    spec["podSelector"] = spec.get("podSelector") or {}
    for name in ("ingress", "egress"):
        update_items(spec, name, _default_policy_rule_ports)
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return {**manifest, "spec": spec}


def _default_backend(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    update_struct(defaulted, "service", lambda service: {**service, "port": service.get("port") or {}})
    return defaulted


def _default_ingress_rule(source: ManifestPart) -> ManifestPart:
    def path(each_path: ManifestPart) -> ManifestPart:
        return {"pathType": None, **each_path, "backend": _default_backend(each_path.get("backend") or {})}

    def http(rule: ManifestPart) -> ManifestPart:
        defaulted = {"paths": None, **rule}
        update_items(defaulted, "paths", path)
        return defaulted

    defaulted = dict(source)
    update_struct(defaulted, "http", http)
    return defaulted


def default_ingress(manifest: ManifestPart) -> ManifestPart:
    spec, status = copy_struct(manifest, "spec"), copy_struct(manifest, "status")
    update_struct(spec, "defaultBackend", _default_backend)
    update_items(spec, "rules", _default_ingress_rule)
    status["loadBalancer"] = status.get("loadBalancer") or {}
    return {**manifest, "spec": spec, "status": status}


def default_ingress_class(manifest: ManifestPart) -> ManifestPart:
    spec = copy_struct(manifest, "spec")
    update_struct(spec, "parameters", lambda item: copy_with_defaults(item, ("scope", "Cluster")))
    return {**manifest, "spec": spec}


def default_disruption_budget(manifest: ManifestPart) -> ManifestPart:
    status = copy_with_defaults(manifest.get("status") or {}, *((name, 0) for name in _BUDGET_COUNT_FIELDS))
    return {**manifest, "spec": manifest.get("spec") or {}, "status": status}


def default_endpoint_slice(manifest: ManifestPart) -> ManifestPart:
    defaulted = {"endpoints": None, "ports": None, **manifest}
    update_items(defaulted, "endpoints", lambda item: {**item, "conditions": item.get("conditions") or {}})
    update_items(defaulted, "ports", lambda port: copy_with_defaults(port, ("name", ""), ("protocol", "TCP")))
    return defaulted


def default_role(manifest: ManifestPart) -> ManifestPart:
    return {"rules": None, **manifest}


def _default_subject(source: ManifestPart) -> ManifestPart:
    return copy_with_defaults(source, ("apiGroup", _RBAC_GROUP)) if source.get("kind") in ("User", "Group") else source


def default_role_binding(manifest: ManifestPart) -> ManifestPart:
    defaulted = dict(manifest)
    defaulted["roleRef"] = set_defaults(
        copy_struct(defaulted, "roleRef"), (("apiGroup", _RBAC_GROUP), ("kind", ""), ("name", ""))
    )
    update_items(defaulted, "subjects", _default_subject)
    return defaulted


def default_priority_class(manifest: ManifestPart) -> ManifestPart:
    return copy_with_defaults(manifest, ("preemptionPolicy", "PreemptLowerPriority"), ("value", 0))


def default_storage_class(manifest: ManifestPart) -> ManifestPart:
    return copy_with_defaults(
        manifest, ("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate"), ("provisioner", "")
    )


def default_csi_driver(manifest: ManifestPart) -> ManifestPart:
    spec = copy_struct(manifest, "spec")
    pairs = (
        ("attachRequired", True), ("podInfoOnMount", False), ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"), ("requiresRepublish", False), ("seLinuxMount", False),
    )  # fmt: skip
    set_defaults(spec, pairs)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]
    return {**manifest, "spec": spec}


def default_csi_node(manifest: ManifestPart) -> ManifestPart:
    return {**manifest, "spec": {"drivers": None, **copy_struct(manifest, "spec")}}


def default_csi_storage_capacity(manifest: ManifestPart) -> ManifestPart:
    defaulted = {"storageClassName": "", **manifest}
    for name in ("capacity", "maximumVolumeSize"):
        if defaulted.get(name) is not None:
            defaulted[name] = canonicalize(defaulted[name])
    return defaulted


def default_volume_attachment(manifest: ManifestPart) -> ManifestPart:
    spec = copy_struct(manifest, "spec")
    spec["source"] = spec.get("source") or {}
    status = copy_with_defaults(manifest.get("status") or {}, ("attached", False))
    return {**manifest, "spec": spec, "status": status}


def _default_service_reference_port(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    update_struct(defaulted, "service", lambda service: copy_with_defaults(service, ("port", 443)))
    return defaulted


def _default_selectors(target: ManifestPart) -> ManifestPart:
    for name in ("namespaceSelector", "objectSelector"):
        if target.get(name) is None:
            target[name] = {}
    return set_defaults(target, (("matchPolicy", "Equivalent"),))


def _default_webhook(source: ManifestPart) -> ManifestPart:
    defaulted = _default_selectors(copy_with_defaults(source, ("failurePolicy", "Fail"), ("timeoutSeconds", 10)))
    defaulted["clientConfig"] = _default_service_reference_port(defaulted.get("clientConfig") or {})
    update_items(defaulted, "rules", lambda rule: copy_with_defaults(rule, ("scope", "*")))
    return defaulted


def default_validating_webhooks(manifest: ManifestPart) -> ManifestPart:
    defaulted = dict(manifest)
    update_items(defaulted, "webhooks", _default_webhook)
    return defaulted


def default_mutating_webhooks(manifest: ManifestPart) -> ManifestPart:
    defaulted = dict(manifest)
    update_items(
        defaulted,
        "webhooks",
        lambda item: copy_with_defaults(_default_webhook(item), ("reinvocationPolicy", "Never")),
    )
    return defaulted


def _default_match_resources(source: ManifestPart) -> ManifestPart:
    defaulted = _default_selectors(dict(source))
    for name in ("resourceRules", "excludeResourceRules"):
        update_items(defaulted, name, lambda rule: copy_with_defaults(rule, ("scope", "*")))
    return defaulted


def default_admission_policy(manifest: ManifestPart) -> ManifestPart:
    spec = set_defaults(copy_struct(manifest, "spec"), (("failurePolicy", "Fail"),))
    update_struct(spec, "matchConstraints", _default_match_resources)
    return {**manifest, "spec": spec, "status": manifest.get("status") or {}}


def default_admission_policy_binding(manifest: ManifestPart) -> ManifestPart:
    spec = copy_struct(manifest, "spec")
    update_struct(spec, "matchResources", _default_match_resources)
    return {**manifest, "spec": spec}


def default_api_service(manifest: ManifestPart) -> ManifestPart:
    spec = _default_service_reference_port(copy_struct(manifest, "spec"))
    set_defaults(spec, (("groupPriorityMinimum", 0), ("versionPriority", 0)))
    return {**manifest, "spec": spec, "status": manifest.get("status") or {}}


def default_custom_resource_definition(manifest: ManifestPart) -> ManifestPart:
    spec, status = copy_struct(manifest, "spec"), copy_struct(manifest, "status")
    names = copy_struct(spec, "names")
    kind = str(names.get("kind") or "")
    set_defaults(names, (("singular", kind.lower()), *((("listKind", f"{kind}List"),) if kind else ())))
    spec["names"] = names
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    else:
        spec["conversion"] = _default_conversion(spec["conversion"])
    status.setdefault("conditions", None)
    status["acceptedNames"] = set_defaults(copy_struct(status, "acceptedNames"), (("plural", ""), ("kind", "")))
    if not status.get("storedVersions"):
        storage_versions = (version for version in spec.get("versions") or () if version.get("storage"))
        status["storedVersions"] = [version["name"] for version in storage_versions][:1] or None
    return {**manifest, "spec": spec, "status": status}


def _default_conversion(source: ManifestPart) -> ManifestPart:
    def webhook(each_webhook: ManifestPart) -> ManifestPart:
        defaulted = dict(each_webhook)
        update_struct(defaulted, "clientConfig", _default_service_reference_port)
        return defaulted

    defaulted = dict(source)
    update_struct(defaulted, "webhook", webhook)
    return defaulted


def default_token_request(manifest: ManifestPart) -> ManifestPart:
    return {**manifest, "spec": copy_with_defaults(manifest.get("spec") or {}, ("expirationSeconds", 3600))}


def build_struct_defaulter(*names: str) -> Callable[[ManifestPart], ManifestPart]:
    """Build a function that adds structs that are never omitted: an empty `spec` is stored as `{}`."""

    def apply(manifest: ManifestPart) -> ManifestPart:
        return {**manifest, **{name: manifest.get(name) or {} for name in names}}

    return apply
