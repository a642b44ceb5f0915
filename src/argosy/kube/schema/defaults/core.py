"""Defaults of core kinds: services, volumes, namespaces, nodes, limits, events."""

from __future__ import annotations

import base64

from argosy.kube.schema.defaults.fill import Part, each, fill, filled, part, quantities, within
from argosy.kube.schema.defaults.pod import claim_spec

_REACHED_FROM_OUTSIDE = ("NodePort", "LoadBalancer")
_NODE_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
    "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip
_PV_SOURCES = {
    "hostPath": (("type", ""),),
    "iscsi": (("iscsiInterface", "default"),),
    "rbd": (("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")),
    "azureDisk": (("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("readOnly", False), ("kind", "Shared")),
    "scaleIO": (("storageMode", "ThinProvisioned"), ("fsType", "xfs")),
}


def _port(given: Part) -> Part:
    made = filled(given, ("protocol", "TCP"))
    if not made.get("targetPort"):
        made["targetPort"] = made.get("port", 0)
    return made


def service(manifest: Part) -> Part:
    spec = fill(part(manifest, "spec"), (("type", "ClusterIP"), ("sessionAffinity", "None")))
    kind = spec["type"]
    each(spec, "ports", _port)
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    if kind in _REACHED_FROM_OUTSIDE or (kind == "ClusterIP" and spec.get("externalIPs")):
        fill(spec, (("externalTrafficPolicy", "Cluster"),))
    if kind != "ExternalName":
        fill(spec, (("internalTrafficPolicy", "Cluster"),))
    status = part(manifest, "status")
    balancer = part(status, "loadBalancer")
    if kind == "LoadBalancer":
        fill(spec, (("allocateLoadBalancerNodePorts", True),))
        each(balancer, "ingress", lambda entry: filled(entry, ("ipMode", "VIP")) if entry.get("ip") else entry)
    status["loadBalancer"] = balancer
    return {**manifest, "spec": spec, "status": status}


def secret(manifest: Part) -> Part:
    made = filled(manifest, ("type", "Opaque"))
    plain = made.pop("stringData", None)
    if plain:
        # k8s: stringData is stored as data, and takes precedence over data with the same key
        encoded = {key: base64.b64encode(str(value or "").encode()).decode() for key, value in plain.items()}
        made["data"] = {**(made.get("data") or {}), **encoded}
    return made


def namespace(manifest: Part) -> Part:
    metadata = part(manifest, "metadata")
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    status = filled(manifest.get("status") or {}, ("phase", "Active"))
    return {**manifest, "metadata": metadata, "spec": manifest.get("spec") or {}, "status": status}


def node(manifest: Part) -> Part:
    status = part(manifest, "status")
    for name in ("capacity", "allocatable"):
        within(status, name, quantities)
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = status["capacity"]
    endpoints = part(status, "daemonEndpoints")
    endpoints["kubeletEndpoint"] = filled(endpoints.get("kubeletEndpoint") or {}, ("Port", 0))
    status["daemonEndpoints"] = endpoints
    status["nodeInfo"] = fill(part(status, "nodeInfo"), ((name, "") for name in _NODE_INFO))
    return {**manifest, "spec": manifest.get("spec") or {}, "status": status}


def persistent_volume(manifest: Part) -> Part:
    spec = part(manifest, "spec")
    fill(spec, (("persistentVolumeReclaimPolicy", "Retain"), ("volumeMode", "Filesystem")))
    within(spec, "capacity", quantities)
    for name, pairs in _PV_SOURCES.items():
        within(spec, name, lambda source, pairs=pairs: filled(source, *pairs))  # type: ignore[misc]
    return {**manifest, "spec": spec, "status": filled(manifest.get("status") or {}, ("phase", "Pending"))}


def claim(manifest: Part) -> Part:
    status = filled(manifest.get("status") or {}, ("phase", "Pending"))
    within(status, "capacity", quantities)
    return {**manifest, "spec": claim_spec(manifest.get("spec") or {}), "status": status}


def _limit(given: Part) -> Part:
    made = dict(given)
    for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        within(made, name, quantities)
    if made.get("type") == "Container":
        limits = {**(made.get("max") or {}), **(made.get("default") or {})}
        requests = {**(made.get("min") or {}), **limits, **(made.get("defaultRequest") or {})}
        made.update({name: value for name, value in (("default", limits), ("defaultRequest", requests)) if value})
    return made


def limit_range(manifest: Part) -> Part:
    spec = part(manifest, "spec")
    spec.setdefault("limits", None)
    each(spec, "limits", _limit)
    return {**manifest, "spec": spec}


def resource_quota(manifest: Part) -> Part:
    spec, status = part(manifest, "spec"), part(manifest, "status")
    within(spec, "hard", quantities)
    for name in ("hard", "used"):
        within(status, name, quantities)
    return {**manifest, "spec": spec, "status": status}


def _subset(given: Part) -> Part:
    made = dict(given)
    each(made, "ports", lambda port: filled(port, ("protocol", "TCP")))
    return made


def endpoints(manifest: Part) -> Part:
    made = dict(manifest)
    each(made, "subsets", _subset)
    return made


def event(manifest: Part) -> Part:
    made = dict(manifest)
    for name in ("involvedObject", "source"):
        made[name] = made.get(name) or {}
    for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
        made.setdefault(name, None)
    for name in ("reportingComponent", "reportingInstance"):
        made[name] = made.get(name) or ""
    return made


def event_of_events_group(manifest: Part) -> Part:
    made = dict(manifest)
    for name in ("regarding", "deprecatedSource"):
        made[name] = made.get(name) or {}
    for name in ("eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"):
        made.setdefault(name, None)
    return made
