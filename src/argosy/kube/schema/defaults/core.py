"""Defaults of core kinds: services, volumes, namespaces, nodes, limits, events."""

from __future__ import annotations

import base64

from argosy.kube.schema.defaults.missing_field_defaults import (
    ManifestPart,
    canonicalize_quantities,
    copy_struct,
    copy_with_defaults,
    set_defaults,
    update_items,
    update_struct,
)
from argosy.kube.schema.defaults.pod import default_claim_spec

_EXTERNAL_SERVICE_TYPES = ("NodePort", "LoadBalancer")
_NODE_INFO_FIELDS = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
    "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip
_VOLUME_SOURCE_DEFAULTS = {
    "hostPath": (("type", ""),),
    "iscsi": (("iscsiInterface", "default"),),
    "rbd": (("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")),
    "azureDisk": (("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("readOnly", False), ("kind", "Shared")),
    "scaleIO": (("storageMode", "ThinProvisioned"), ("fsType", "xfs")),
}


def _default_port(source: ManifestPart) -> ManifestPart:
    defaulted = copy_with_defaults(source, ("protocol", "TCP"))
    if not defaulted.get("targetPort"):
        defaulted["targetPort"] = defaulted.get("port", 0)
    return defaulted


def default_service(manifest: ManifestPart) -> ManifestPart:
    spec = set_defaults(copy_struct(manifest, "spec"), (("type", "ClusterIP"), ("sessionAffinity", "None")))
    service_type = spec["type"]
    update_items(spec, "ports", _default_port)
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client_ip = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client_ip.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    if service_type in _EXTERNAL_SERVICE_TYPES or (service_type == "ClusterIP" and spec.get("externalIPs")):
        set_defaults(spec, (("externalTrafficPolicy", "Cluster"),))
    if service_type != "ExternalName":
        set_defaults(spec, (("internalTrafficPolicy", "Cluster"),))
    status = copy_struct(manifest, "status")
    load_balancer = copy_struct(status, "loadBalancer")
    if service_type == "LoadBalancer":
        set_defaults(spec, (("allocateLoadBalancerNodePorts", True),))
        update_items(
            load_balancer,
            "ingress",
            lambda entry: copy_with_defaults(entry, ("ipMode", "VIP")) if entry.get("ip") else entry,
        )
    status["loadBalancer"] = load_balancer
    return {**manifest, "spec": spec, "status": status}


def default_secret(manifest: ManifestPart) -> ManifestPart:
    defaulted = copy_with_defaults(manifest, ("type", "Opaque"))
    string_data = defaulted.pop("stringData", None)
    if string_data:
        # k8s: stringData is stored as data, and takes precedence over data with the same key
        encoded = {key: base64.b64encode(str(value or "").encode()).decode() for key, value in string_data.items()}
        defaulted["data"] = {**(defaulted.get("data") or {}), **encoded}
    return defaulted


def default_namespace(manifest: ManifestPart) -> ManifestPart:
    metadata = copy_struct(manifest, "metadata")
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    status = copy_with_defaults(manifest.get("status") or {}, ("phase", "Active"))
    return {**manifest, "metadata": metadata, "spec": manifest.get("spec") or {}, "status": status}


def default_node(manifest: ManifestPart) -> ManifestPart:
    status = copy_struct(manifest, "status")
    for name in ("capacity", "allocatable"):
        update_struct(status, name, canonicalize_quantities)
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = status["capacity"]
    endpoints = copy_struct(status, "daemonEndpoints")
    endpoints["kubeletEndpoint"] = copy_with_defaults(endpoints.get("kubeletEndpoint") or {}, ("Port", 0))
    status["daemonEndpoints"] = endpoints
    status["nodeInfo"] = set_defaults(copy_struct(status, "nodeInfo"), ((name, "") for name in _NODE_INFO_FIELDS))
    return {**manifest, "spec": manifest.get("spec") or {}, "status": status}


def default_persistent_volume(manifest: ManifestPart) -> ManifestPart:
    spec = copy_struct(manifest, "spec")
    set_defaults(spec, (("persistentVolumeReclaimPolicy", "Retain"), ("volumeMode", "Filesystem")))
    update_struct(spec, "capacity", canonicalize_quantities)
    for name, pairs in _VOLUME_SOURCE_DEFAULTS.items():
        update_struct(spec, name, lambda source, pairs=pairs: copy_with_defaults(source, *pairs))  # type: ignore[misc]
    return {**manifest, "spec": spec, "status": copy_with_defaults(manifest.get("status") or {}, ("phase", "Pending"))}


def default_claim(manifest: ManifestPart) -> ManifestPart:
    status = copy_with_defaults(manifest.get("status") or {}, ("phase", "Pending"))
    update_struct(status, "capacity", canonicalize_quantities)
    return {**manifest, "spec": default_claim_spec(manifest.get("spec") or {}), "status": status}


def _default_limit(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        update_struct(defaulted, name, canonicalize_quantities)
    if defaulted.get("type") == "Container":
        limits = {**(defaulted.get("max") or {}), **(defaulted.get("default") or {})}
        requests = {**(defaulted.get("min") or {}), **limits, **(defaulted.get("defaultRequest") or {})}
        defaulted.update({name: value for name, value in (("default", limits), ("defaultRequest", requests)) if value})
    return defaulted


def default_limit_range(manifest: ManifestPart) -> ManifestPart:
    spec = copy_struct(manifest, "spec")
    spec.setdefault("limits", None)
    update_items(spec, "limits", _default_limit)
    return {**manifest, "spec": spec}


def default_resource_quota(manifest: ManifestPart) -> ManifestPart:
    spec, status = copy_struct(manifest, "spec"), copy_struct(manifest, "status")
    update_struct(spec, "hard", canonicalize_quantities)
    for name in ("hard", "used"):
        update_struct(status, name, canonicalize_quantities)
    return {**manifest, "spec": spec, "status": status}


def _default_subset(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    update_items(defaulted, "ports", lambda port: copy_with_defaults(port, ("protocol", "TCP")))
    return defaulted


def default_endpoints(manifest: ManifestPart) -> ManifestPart:
    defaulted = dict(manifest)
    update_items(defaulted, "subsets", _default_subset)
    return defaulted


def default_event(manifest: ManifestPart) -> ManifestPart:
    defaulted = dict(manifest)
    for name in ("involvedObject", "source"):
        defaulted[name] = defaulted.get(name) or {}
    for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
        defaulted.setdefault(name, None)
    for name in ("reportingComponent", "reportingInstance"):
        defaulted[name] = defaulted.get(name) or ""
    return defaulted


def default_events_v1_event(manifest: ManifestPart) -> ManifestPart:
    defaulted = dict(manifest)
    for name in ("regarding", "deprecatedSource"):
        defaulted[name] = defaulted.get(name) or {}
    for name in ("eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"):
        defaulted.setdefault(name, None)
    return defaulted
