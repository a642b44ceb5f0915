"""Builds the Endpoints and EndpointSlices of a Service.

In: a Service and the Pods it selects. Out: manifests. Never: writes; promises that a program listens at an address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from argosy.annotations import SIMULATED
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.owner_references_and_marks import (
    SIMULATED_NOTE,
    build_owner_reference,
    hash_to_name_suffix,
    is_being_deleted,
)
from argosy.sandbox.simulators.pod_counts import FINISHED_PHASES, is_ready, read_pod_phase

SERVICE_NAME_LABEL: Final = "kubernetes.io/service-name"
MANAGED_BY_LABEL: Final = "endpointslice.kubernetes.io/managed-by"
SLICE_CONTROLLER_NAME: Final = "endpointslice-controller.k8s.io"
HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
MAX_ENDPOINTS_PER_SLICE: Final = 100  # k8s: --max-endpoints-per-slice
EndpointPorts = tuple[tuple[str, int, str, str], ...]  # name, number, protocol, appProtocol


def has_managed_endpoints(service: Manifest) -> bool:
    """k8s: without a selector, users manage the endpoints themselves."""
    return bool(service["spec"].get("selector")) and service["spec"].get("type") != "ExternalName"


def build_endpoints(service: Manifest, pods: Sequence[Manifest]) -> Manifest:
    publishes_not_ready = bool(service["spec"].get("publishNotReadyAddresses"))
    addresses_by_ports: dict[EndpointPorts, tuple[list[Manifest], list[Manifest]]] = {}
    for pod in _list_reachable_pods(pods):
        if is_being_deleted(pod) and not publishes_not_ready:
            continue
        ready, unready = addresses_by_ports.setdefault(_resolve_ports(service, pod), ([], []))
        (ready if publishes_not_ready or is_ready(pod) else unready).append(_build_address(service, pod))
    subsets: list[dict[str, Any]] = []
    for ports, (ready, unready) in sorted(addresses_by_ports.items(), key=lambda item: item[0]):
        subset = {"addresses": ready, "notReadyAddresses": unready, "ports": _ports_to_wire(ports)}
        subsets.append({name: value for name, value in subset.items() if value})
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": _build_metadata(service), "subsets": subsets or None}


def build_endpoint_slices(service: Manifest, pods: Sequence[Manifest]) -> list[Manifest]:
    endpoints_by_ports: dict[EndpointPorts, list[Manifest]] = {}
    for pod in _list_reachable_pods(pods):
        endpoints_by_ports.setdefault(_resolve_ports(service, pod), []).append(_build_endpoint(service, pod))
    if not endpoints_by_ports:
        endpoints_by_ports[()] = []
    slices: list[Manifest] = []
    for ports, group in sorted(endpoints_by_ports.items(), key=lambda item: item[0]):
        for start in range(0, max(len(group), 1), MAX_ENDPOINTS_PER_SLICE):
            slices.append(
                _build_endpoint_slice(service, ports, group[start : start + MAX_ENDPOINTS_PER_SLICE], len(slices))
            )
    return slices


def _build_endpoint_slice(
    service: Manifest, ports: EndpointPorts, endpoints: Sequence[Manifest], number: int
) -> Manifest:
    metadata = _build_metadata(service)
    labels = {
        **metadata["labels"],
        SERVICE_NAME_LABEL: service["metadata"]["name"],
        MANAGED_BY_LABEL: SLICE_CONTROLLER_NAME,
    }
    name = f"{service['metadata']['name']}-{hash_to_name_suffix(service['metadata']['uid'] + '/' + str(number), 5)}"
    reference = build_owner_reference(service)
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "name": name, "labels": labels, "ownerReferences": [reference]},
        "addressType": "IPv4",
        "endpoints": list(endpoints),
        "ports": [{"name": "", **port} for port in _ports_to_wire(ports)],
    }


def _build_metadata(service: Manifest) -> dict[str, Any]:
    service_metadata = service["metadata"]
    labels = dict(service_metadata.get("labels") or {})
    if service["spec"].get("clusterIP") == "None":
        labels[HEADLESS_LABEL] = ""
    return {
        "name": service_metadata["name"],
        "namespace": service_metadata["namespace"],
        "labels": labels,
        "annotations": {SIMULATED: SIMULATED_NOTE},
    }


def _list_reachable_pods(pods: Sequence[Manifest]) -> Iterator[Manifest]:
    for pod in sorted(pods, key=lambda item: str(item["metadata"]["name"])):
        if (pod.get("status") or {}).get("podIP") and read_pod_phase(pod) not in FINISHED_PHASES:
            yield pod


def _build_address(service: Manifest, pod: Manifest) -> dict[str, Any]:
    status, metadata = pod["status"], pod["metadata"]
    pod_reference = {
        "kind": "Pod",
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
    }
    address: dict[str, Any] = {
        "ip": status["podIP"],
        "nodeName": pod["spec"].get("nodeName"),
        "targetRef": pod_reference,
    }
    if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == service["metadata"]["name"]:
        address["hostname"] = pod["spec"]["hostname"]
    return address


def _build_endpoint(service: Manifest, pod: Manifest) -> dict[str, Any]:
    address = _build_address(service, pod)
    is_serving, is_terminating = is_ready(pod), is_being_deleted(pod)
    is_endpoint_ready = (is_serving and not is_terminating) or bool(service["spec"].get("publishNotReadyAddresses"))
    optional_fields = {name: address[name] for name in ("nodeName", "targetRef", "hostname") if address.get(name)}
    conditions = {"ready": is_endpoint_ready, "serving": is_serving, "terminating": is_terminating}
    return {"addresses": [address["ip"]], "conditions": conditions, **optional_fields}


def _resolve_ports(service: Manifest, pod: Manifest) -> EndpointPorts:
    """Resolve the Service's ports for this Pod, without named ports that no container has."""
    ports = []
    for port in service["spec"].get("ports") or ():
        protocol = str(port.get("protocol") or "TCP")
        target = port.get("targetPort") or port["port"]
        number = target if isinstance(target, int) else _find_named_port(pod, str(target), protocol)
        if number:
            ports.append((str(port.get("name") or ""), int(number), protocol, str(port.get("appProtocol") or "")))
    return tuple(ports)


def _find_named_port(pod: Manifest, name: str, protocol: str) -> int:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("name") == name and (port.get("protocol") or "TCP") == protocol:
                return int(port["containerPort"])
    return int(name) if name.isdigit() else 0


def _ports_to_wire(ports: EndpointPorts) -> list[dict[str, Any]]:
    wire_ports = []
    for name, number, protocol, app_protocol in ports:
        port: dict[str, Any] = {"port": number, "protocol": protocol}
        port |= {"name": name} if name else {}
        wire_ports.append({**port, "appProtocol": app_protocol} if app_protocol else port)
    return wire_ports
