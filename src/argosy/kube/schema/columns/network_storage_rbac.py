"""Table rows of network, storage, RBAC, webhook and API service kinds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from argosy.kube.schema.columns.cells import (
    NONE,
    UNSET,
    ManifestPart,
    find_condition,
    format_age,
    format_first_values,
    format_load_balancer_addresses,
    format_quantity,
    format_selector,
    get_name,
    get_spec,
    get_status,
    human_duration,
)

_DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def build_ingress_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec = get_spec(manifest)
    rules = object_spec.get("rules") or ()
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    more_text = f" + {len(rules) - 3} more..." if len(hosts) >= 3 and len(rules) > 3 else ""
    return [
        get_name(manifest),
        NONE if object_spec.get("ingressClassName") is None else object_spec["ingressClassName"],
        f"{','.join(hosts[:3])}{more_text}" if hosts else "*",
        format_load_balancer_addresses(get_status(manifest).get("loadBalancer")),
        "80, 443" if object_spec.get("tls") else "80",
        format_age(manifest, now),
    ]


def build_ingress_class_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec = get_spec(manifest)
    reference = object_spec.get("parameters")
    parameters = NONE
    if reference is not None:
        group = f".{reference['apiGroup']}" if reference.get("apiGroup") is not None else ""
        parameters = f"{reference.get('kind') or ''}{group}/{reference.get('name') or ''}"
    return [get_name(manifest), object_spec.get("controller") or "", parameters, format_age(manifest, now)]


def build_network_policy_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    return [get_name(manifest), format_selector(get_spec(manifest).get("podSelector") or {}), format_age(manifest, now)]


def build_endpoint_slice_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    ports = []
    for port in manifest.get("ports") or ():
        number, port_name = port.get("port"), port.get("name")
        ports.append("*" if number is None and port_name is None else str(port_name if number is None else number))
    endpoint_addresses = [
        address for endpoint in manifest.get("endpoints") or () for address in endpoint.get("addresses") or ()
    ]
    kind = manifest.get("addressType") or ""
    return [
        get_name(manifest),
        kind,
        format_first_values(ports) or UNSET,
        format_first_values(endpoint_addresses) or UNSET,
        format_age(manifest, now),
    ]


def build_disruption_budget_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec = get_spec(manifest)
    min_available, max_unavailable = (
        "N/A" if object_spec.get(field) is None else str(object_spec[field])
        for field in ("minAvailable", "maxUnavailable")
    )
    return [
        get_name(manifest),
        min_available,
        max_unavailable,
        get_status(manifest).get("disruptionsAllowed") or 0,
        format_age(manifest, now),
    ]


def build_role_binding_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    ref, subjects = manifest.get("roleRef") or {}, manifest.get("subjects") or ()
    names_by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in subjects:
        subject_name = str(subject.get("name") or "")
        if subject.get("kind") == "ServiceAccount":
            subject_name = f"{subject.get('namespace') or ''}/{subject_name}"
        names_by_kind.setdefault(subject.get("kind") or "", []).append(subject_name)
    return [
        get_name(manifest),
        f"{ref.get('kind') or ''}/{ref.get('name') or ''}",
        format_age(manifest, now),
        ", ".join(names_by_kind["User"]),
        ", ".join(names_by_kind["Group"]),
        ", ".join(names_by_kind["ServiceAccount"]),
    ]


def build_certificate_request_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec, object_status = get_spec(manifest), get_status(manifest)
    kinds = {entry.get("type") for entry in object_status.get("conditions") or ()}
    condition_text = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    condition_text += (",Failed" if "Failed" in kinds else "") + (",Issued" if object_status.get("certificate") else "")
    seconds = object_spec.get("expirationSeconds")
    return [
        get_name(manifest),
        format_age(manifest, now),
        object_spec.get("signerName") or NONE,
        object_spec.get("username") or "",
        NONE if seconds is None else human_duration(seconds),
        condition_text,
    ]


def build_lease_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    return [get_name(manifest), get_spec(manifest).get("holderIdentity") or "", format_age(manifest, now)]


def build_storage_class_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    annotations = manifest["metadata"].get("annotations") or {}
    default = any(annotations.get(annotation) == "true" for annotation in _DEFAULT_CLASS_ANNOTATIONS)
    return [
        f"{get_name(manifest)} (default)" if default else get_name(manifest),
        manifest.get("provisioner") or "",
        manifest.get("reclaimPolicy") or "Delete",
        manifest.get("volumeBindingMode") or "Immediate",
        bool(manifest.get("allowVolumeExpansion")),
        format_age(manifest, now),
    ]


def build_volume_attachment_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec = get_spec(manifest)
    return [
        get_name(manifest),
        object_spec.get("attacher") or "",
        (object_spec.get("source") or {}).get("persistentVolumeName") or "",
        object_spec.get("nodeName") or "",
        bool(get_status(manifest).get("attached")),
        format_age(manifest, now),
    ]


def build_csi_driver_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec = get_spec(manifest)
    requests = object_spec.get("tokenRequests")
    return [
        get_name(manifest),
        object_spec.get("attachRequired") is not False,
        bool(object_spec.get("podInfoOnMount")),
        bool(object_spec.get("storageCapacity")),
        UNSET if requests is None else ",".join(request.get("audience") or "" for request in requests),
        bool(object_spec.get("requiresRepublish")),
        ",".join(object_spec.get("volumeLifecycleModes") or ()) or NONE,
        format_age(manifest, now),
    ]


def build_csi_node_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    return [get_name(manifest), len(get_spec(manifest).get("drivers") or ()), format_age(manifest, now)]


def build_csi_capacity_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    capacity = manifest.get("capacity")
    return [
        get_name(manifest),
        manifest.get("storageClassName") or "",
        UNSET if capacity is None else format_quantity(capacity),
    ]


def build_priority_class_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    policy = manifest.get("preemptionPolicy") or ""
    return [
        get_name(manifest),
        manifest.get("value") or 0,
        bool(manifest.get("globalDefault")),
        format_age(manifest, now),
        policy,
    ]


def build_runtime_class_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    return [get_name(manifest), manifest.get("handler") or "", format_age(manifest, now)]


def build_webhooks_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    return [get_name(manifest), len(manifest.get("webhooks") or ()), format_age(manifest, now)]


def build_admission_policy_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec = get_spec(manifest)
    kind = object_spec.get("paramKind")
    param_kind = UNSET if kind is None else f"{kind.get('apiVersion') or ''}/{kind.get('kind') or ''}"
    return [get_name(manifest), len(object_spec.get("validations") or ()), param_kind, format_age(manifest, now)]


def build_admission_policy_binding_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec = get_spec(manifest)
    ref = object_spec.get("paramRef") or {}
    param_ref = f"{ref.get('namespace') or '*'}/{ref['name']}" if ref.get("name") else UNSET
    return [get_name(manifest), object_spec.get("policyName") or "", param_ref, format_age(manifest, now)]


def build_api_service_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    reference, available = get_spec(manifest).get("service"), find_condition(manifest, "Available")
    service = "Local" if reference is None else f"{reference.get('namespace') or ''}/{reference.get('name') or ''}"
    available_text = "Unknown"
    if available is not None:
        available_text = str(available.get("status") or "")
        if available_text != "True" and available.get("reason"):
            available_text = f"{available_text} ({available['reason']})"
    return [get_name(manifest), service, available_text, format_age(manifest, now)]


def build_flow_schema_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec = get_spec(manifest)
    dangling, method = find_condition(manifest, "Dangling"), object_spec.get("distinguisherMethod")
    return [
        get_name(manifest),
        (object_spec.get("priorityLevelConfiguration") or {}).get("name") or "",
        object_spec.get("matchingPrecedence") or 0,
        NONE if method is None else method.get("type") or "",
        format_age(manifest, now),
        "?" if dangling is None else dangling.get("status") or "",
    ]


def build_priority_level_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec = get_spec(manifest)
    limited = object_spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing")
    shares: Any = NONE if limited is None else limited.get("nominalConcurrencyShares")
    fields = ("queues", "handSize", "queueLengthLimit")
    queues = [NONE if queuing is None else queuing.get(field) for field in fields]
    return [get_name(manifest), object_spec.get("type") or "", shares, *queues, format_age(manifest, now)]
