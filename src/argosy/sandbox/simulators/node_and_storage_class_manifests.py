"""Builds the simulated Nodes and the StorageClasses for both volume binding modes.

In: nothing, or a Node. Out: manifests, and facts about the Node. Never: claims that a machine exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from argosy.annotations import SIMULATED
from argosy.kube.objects import Manifest, get_annotation
from argosy.sandbox.simulators.owner_references_and_marks import SIMULATED_NOTE, append_simulated_note

NODE_NAME, GPU_NODE_NAME = "sandbox", "sandbox-gpu"
NODE_ADDRESS, GPU_NODE_ADDRESS = "192.0.2.10", "192.0.2.11"  # RFC 5737: reserved for documentation
PROVISIONER: Final = "volumes.sandbox.argosy.dev"
DEFAULT_CLASS_ANNOTATION: Final = "storageclass.kubernetes.io/is-default-class"
NODE_CAPACITY: Final = {"cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "1Ti"}
GPU_RESOURCE: Final = "nvidia.com/gpu"
GPU_TAINT: Final = {"key": GPU_RESOURCE, "effect": "NoSchedule"}

READY_CONDITION: Final = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": append_simulated_note("no machine backs this node"),
}


def build_initial_objects() -> Sequence[Manifest]:
    return [
        build_node(NODE_NAME, NODE_ADDRESS, NODE_CAPACITY),
        build_node(
            GPU_NODE_NAME,
            GPU_NODE_ADDRESS,
            {**NODE_CAPACITY, GPU_RESOURCE: "8"},
            labels={f"{GPU_RESOURCE}.present": "true"},
            taints=[GPU_TAINT],
        ),
        build_storage_class("standard", "Immediate", is_default=True),
        build_storage_class("standard-wait", "WaitForFirstConsumer"),
    ]


def build_node(
    name: str,
    address: str,
    capacity: Mapping[str, str],
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Manifest:
    default_labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    addresses = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**default_labels, **(labels or {})},
            "annotations": {SIMULATED: SIMULATED_NOTE},
        },
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {
            "capacity": dict(capacity),
            "allocatable": dict(capacity),
            "addresses": addresses,
            "conditions": [READY_CONDITION],
            "nodeInfo": _build_node_info(),
        },
    }


def _build_node_info() -> Manifest:
    fields = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion")
    node_info = dict.fromkeys((*fields, "kubeletVersion", "kubeProxyVersion"), "simulated")
    return {**node_info, "operatingSystem": "linux", "architecture": "amd64"}


def build_storage_class(name: str, binding_mode: str, *, is_default: bool = False) -> Manifest:
    annotations = {SIMULATED: SIMULATED_NOTE, **({DEFAULT_CLASS_ANNOTATION: "true"} if is_default else {})}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": binding_mode,
        "allowVolumeExpansion": True,
    }


def is_simulated_node(node: Manifest) -> bool:
    """True if the Node is simulated; real Nodes have their own kubelet."""
    return bool(get_annotation(node, SIMULATED))


def read_internal_ip(node: Manifest) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((str(address["address"]) for address in addresses if address["type"] == "InternalIP"), NODE_ADDRESS)
