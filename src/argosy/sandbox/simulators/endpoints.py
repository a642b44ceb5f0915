"""Builds the Endpoints and EndpointSlices of a Service.

In: a Service and the Pods it selects. Out: manifests. Never: writes; promises that a program listens at an address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from argosy.annotations import SIMULATED
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import BY, is_dying, letters, reference_to
from argosy.sandbox.simulators.pod_counts import FINISHED, is_ready, phase_of

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
CONTROLLER: Final = "endpointslice-controller.k8s.io"
HEADLESS: Final = "service.kubernetes.io/headless"
IN_A_SLICE: Final = 100  # k8s: --max-endpoints-per-slice
Ports = tuple[tuple[str, int, str, str], ...]  # name, number, protocol, appProtocol


def is_served(service: Manifest) -> bool:
    """k8s: without a selector, users manage the endpoints themselves."""
    return bool(service["spec"].get("selector")) and service["spec"].get("type") != "ExternalName"


def endpoints_for(service: Manifest, pods: Sequence[Manifest]) -> Manifest:
    publishes = bool(service["spec"].get("publishNotReadyAddresses"))
    by_ports: dict[Ports, tuple[list[Manifest], list[Manifest]]] = {}
    for pod in _reachable(pods):
        if is_dying(pod) and not publishes:
            continue
        ready, unready = by_ports.setdefault(_ports(service, pod), ([], []))
        (ready if publishes or is_ready(pod) else unready).append(_address(service, pod))
    subsets: list[dict[str, Any]] = []
    for ports, (ready, unready) in sorted(by_ports.items(), key=lambda each: each[0]):
        subset = {"addresses": ready, "notReadyAddresses": unready, "ports": _shown(ports)}
        subsets.append({name: value for name, value in subset.items() if value})
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": _metadata(service), "subsets": subsets or None}


def slices_for(service: Manifest, pods: Sequence[Manifest]) -> list[Manifest]:
    by_ports: dict[Ports, list[Manifest]] = {}
    for pod in _reachable(pods):
        by_ports.setdefault(_ports(service, pod), []).append(_endpoint(service, pod))
    if not by_ports:
        by_ports[()] = []
    made: list[Manifest] = []
    for ports, found in sorted(by_ports.items(), key=lambda each: each[0]):
        for first in range(0, max(len(found), 1), IN_A_SLICE):
            made.append(_slice(service, ports, found[first : first + IN_A_SLICE], len(made)))
    return made


def _slice(service: Manifest, ports: Ports, found: Sequence[Manifest], number: int) -> Manifest:
    metadata = _metadata(service)
    labels = {**metadata["labels"], SERVICE_NAME: service["metadata"]["name"], MANAGED_BY: CONTROLLER}
    name = f"{service['metadata']['name']}-{letters(service['metadata']['uid'] + '/' + str(number), 5)}"
    reference = reference_to(service)
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "name": name, "labels": labels, "ownerReferences": [reference]},
        "addressType": "IPv4",
        "endpoints": list(found),
        "ports": [{"name": "", **each} for each in _shown(ports)],
    }


def _metadata(service: Manifest) -> dict[str, Any]:
    about = service["metadata"]
    labels = dict(about.get("labels") or {})
    if service["spec"].get("clusterIP") == "None":
        labels[HEADLESS] = ""
    return {
        "name": about["name"],
        "namespace": about["namespace"],
        "labels": labels,
        "annotations": {SIMULATED: BY},
    }


def _reachable(pods: Sequence[Manifest]) -> Iterator[Manifest]:
    for pod in sorted(pods, key=lambda each: str(each["metadata"]["name"])):
        if (pod.get("status") or {}).get("podIP") and phase_of(pod) not in FINISHED:
            yield pod


def _address(service: Manifest, pod: Manifest) -> dict[str, Any]:
    status, metadata = pod["status"], pod["metadata"]
    named = {"kind": "Pod", "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]}
    found: dict[str, Any] = {"ip": status["podIP"], "nodeName": pod["spec"].get("nodeName"), "targetRef": named}
    if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == service["metadata"]["name"]:
        found["hostname"] = pod["spec"]["hostname"]
    return found


def _endpoint(service: Manifest, pod: Manifest) -> dict[str, Any]:
    address = _address(service, pod)
    serves, dies = is_ready(pod), is_dying(pod)
    ready = (serves and not dies) or bool(service["spec"].get("publishNotReadyAddresses"))
    rest = {name: address[name] for name in ("nodeName", "targetRef", "hostname") if address.get(name)}
    conditions = {"ready": ready, "serving": serves, "terminating": dies}
    return {"addresses": [address["ip"]], "conditions": conditions, **rest}


def _ports(service: Manifest, pod: Manifest) -> Ports:
    """Resolve the Service's ports for this Pod, without named ports that no container has."""
    found = []
    for each in service["spec"].get("ports") or ():
        protocol = str(each.get("protocol") or "TCP")
        target = each.get("targetPort") or each["port"]
        number = target if isinstance(target, int) else _named_port(pod, str(target), protocol)
        if number:
            found.append((str(each.get("name") or ""), int(number), protocol, str(each.get("appProtocol") or "")))
    return tuple(found)


def _named_port(pod: Manifest, name: str, protocol: str) -> int:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("name") == name and (port.get("protocol") or "TCP") == protocol:
                return int(port["containerPort"])
    return int(name) if name.isdigit() else 0


def _shown(ports: Ports) -> list[dict[str, Any]]:
    shown = []
    for name, number, protocol, application in ports:
        port: dict[str, Any] = {"port": number, "protocol": protocol}
        port |= {"name": name} if name else {}
        shown.append({**port, "appProtocol": application} if application else port)
    return shown
