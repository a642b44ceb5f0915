"""Table rows of core kinds: services, nodes, namespaces, volumes, events, ConfigMaps and Secrets."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from argosy.kube.schema.columns.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    ManifestPart,
    find_condition,
    format_access_modes,
    format_age,
    format_first_values,
    format_labels,
    format_load_balancer_addresses,
    format_quantity,
    format_time_since,
    get_name,
    get_spec,
    get_status,
)

_ROLE_LABEL_PREFIX = "node-role.kubernetes.io/"
_BETA_STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def build_service_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec = get_spec(manifest)
    ips = object_spec.get("clusterIPs") or ([object_spec["clusterIP"]] if object_spec.get("clusterIP") else [NONE])
    ports = ",".join(_format_port(port) for port in object_spec.get("ports") or ())
    return [
        get_name(manifest),
        object_spec.get("type") or "",
        ips[0],
        _format_external_addresses(manifest),
        ports or NONE,
        format_age(manifest, now),
        format_labels(object_spec.get("selector")),
    ]


def _format_port(port: ManifestPart) -> str:
    number = f"{port.get('port')}:{port['nodePort']}" if port.get("nodePort") else f"{port.get('port')}"
    return f"{number}/{port.get('protocol') or ''}"


def _format_external_addresses(manifest: ManifestPart) -> str:
    object_spec = get_spec(manifest)
    kind, external = object_spec.get("type"), object_spec.get("externalIPs") or []
    if kind == "ExternalName":
        return str(object_spec.get("externalName") or "")
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(external) or NONE
    if kind == "LoadBalancer":
        balancer_addresses = format_load_balancer_addresses(get_status(manifest).get("loadBalancer"))
        return ",".join([*balancer_addresses.split(","), *external] if balancer_addresses else external) or "<pending>"
    return UNKNOWN


def build_endpoints_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    endpoint_addresses, total = [], 0
    for subset in manifest.get("subsets") or ():
        ips = [address.get("ip") or "" for address in subset.get("addresses") or ()]
        ports = subset.get("ports")
        total += len(ips) * (len(ports) if ports else 1)
        if not ports:
            endpoint_addresses.extend(ips)
        for port in ports or ():
            endpoint_addresses.extend(
                f"[{ip}]:{port.get('port')}" if ":" in ip else f"{ip}:{port.get('port')}" for ip in ips
            )
    addresses_text = format_first_values(endpoint_addresses, total) if manifest.get("subsets") else NONE
    return [get_name(manifest), addresses_text, format_age(manifest, now)]


def build_node_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_status = get_status(manifest)
    ready = find_condition(manifest, "Ready")
    states = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if get_spec(manifest).get("unschedulable"):
        states.append("SchedulingDisabled")
    labels = manifest["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_LABEL_PREFIX) for key in labels if key.startswith(_ROLE_LABEL_PREFIX)}
    roles.add(labels.get("kubernetes.io/role") or "")
    info = object_status.get("nodeInfo") or {}
    return [
        get_name(manifest),
        ",".join(states),
        ",".join(sorted(roles - {""})) or NONE,
        format_age(manifest, now),
        info.get("kubeletVersion") or "",
        _find_node_address(object_status, "InternalIP"),
        _find_node_address(object_status, "ExternalIP"),
        *(info.get(field) or UNKNOWN for field in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def _find_node_address(node_status: ManifestPart, address_type: str) -> str:
    matching = (
        entry.get("address") for entry in node_status.get("addresses") or () if entry.get("type") == address_type
    )
    return next(matching, None) or NONE


def build_event_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    """Build the row of an Event of either API group; only the field names differ."""
    involved_object = manifest.get("involvedObject") or manifest.get("regarding") or {}
    source = manifest.get("source") or manifest.get("deprecatedSource") or {}
    first = manifest.get("firstTimestamp") or manifest.get("deprecatedFirstTimestamp") or manifest.get("eventTime")
    last = manifest.get("lastTimestamp") or manifest.get("deprecatedLastTimestamp") or first
    series = manifest.get("series")
    count = manifest.get("count") or manifest.get("deprecatedCount") or 1
    if series is not None:
        last, count = series.get("lastObservedTime"), series.get("count") or 0
    kind = str(involved_object.get("kind") or "").lower()
    return [
        format_time_since(last, now),
        manifest.get("type") or "",
        manifest.get("reason") or "",
        f"{kind}/{involved_object['name']}" if involved_object.get("name") else kind,
        involved_object.get("fieldPath") or "",
        _format_event_source(manifest, source),
        str(manifest.get("message") or manifest.get("note") or "").strip(),
        format_time_since(first, now),
        count,
        get_name(manifest),
    ]


def _format_event_source(manifest: ManifestPart, source: ManifestPart) -> str:
    reporter = manifest.get("reportingComponent") or manifest.get("reportingController") or ""
    component = source.get("component") or reporter
    host = source.get("host") or manifest.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


def build_namespace_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    return [get_name(manifest), get_status(manifest).get("phase") or "", format_age(manifest, now)]


def build_secret_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    return [get_name(manifest), manifest.get("type") or "", len(manifest.get("data") or ()), format_age(manifest, now)]


def build_config_map_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    count = len(manifest.get("data") or ()) + len(manifest.get("binaryData") or ())
    return [get_name(manifest), count, format_age(manifest, now)]


def build_service_account_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    return [get_name(manifest), len(manifest.get("secrets") or ()), format_age(manifest, now)]


def _format_phase(manifest: ManifestPart) -> str:
    if manifest["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str(get_status(manifest).get("phase") or "")


def _get_storage_class(manifest: ManifestPart) -> str:
    annotations = manifest["metadata"].get("annotations") or {}
    return str(annotations.get(_BETA_STORAGE_CLASS_ANNOTATION) or get_spec(manifest).get("storageClassName") or "")


def _format_or_unset(struct: ManifestPart, field: str) -> str:
    return UNSET if struct.get(field) is None else str(struct[field])


def build_persistent_volume_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec, claim = get_spec(manifest), get_spec(manifest).get("claimRef")
    return [
        get_name(manifest),
        format_quantity((object_spec.get("capacity") or {}).get("storage")),
        format_access_modes(object_spec.get("accessModes")),
        object_spec.get("persistentVolumeReclaimPolicy") or "",
        _format_phase(manifest),
        f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim else "",
        _get_storage_class(manifest),
        _format_or_unset(object_spec, "volumeAttributesClassName"),
        get_status(manifest).get("reason") or "",
        format_age(manifest, now),
        _format_or_unset(object_spec, "volumeMode"),
    ]


def build_volume_claim_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec, object_status = get_spec(manifest), get_status(manifest)
    bound = bool(object_spec.get("volumeName"))
    return [
        get_name(manifest),
        _format_phase(manifest),
        object_spec.get("volumeName") or "",
        format_quantity((object_status.get("capacity") or {}).get("storage")) if bound else "",
        format_access_modes(object_status.get("accessModes")) if bound else "",
        _get_storage_class(manifest),
        _format_or_unset(object_spec, "volumeAttributesClassName"),
        format_age(manifest, now),
        _format_or_unset(object_spec, "volumeMode"),
    ]


def build_resource_quota_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_status = get_status(manifest)
    hard, used = object_status.get("hard") or {}, object_status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for resource_name in sorted(hard):
        text = f"{resource_name}: {format_quantity(used.get(resource_name))}/{format_quantity(hard[resource_name])}"
        (limits if resource_name.startswith("limits.") else requests).append(text)
    return [get_name(manifest), format_age(manifest, now), ", ".join(requests), ", ".join(limits)]


def build_component_status_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    healthy = next((entry for entry in manifest.get("conditions") or () if entry.get("type") == "Healthy"), None)
    if healthy is None:
        return [get_name(manifest), "Unknown", "", ""]
    status_text = "Healthy" if healthy.get("status") == "True" else "Unhealthy"
    return [get_name(manifest), status_text, healthy.get("message") or "", healthy.get("error") or ""]
