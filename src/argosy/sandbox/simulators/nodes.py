"""Builds the simulated Nodes and the StorageClasses for both volume binding modes.

In: nothing, or a Node. Out: manifests, and facts about the Node. Never: claims that a machine exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from argosy.annotations import SIMULATED
from argosy.kube.objects import Manifest, annotation
from argosy.sandbox.simulators.constants import BY, told

NAME, GPU_NAME = "sandbox", "sandbox-gpu"
ADDRESS, GPU_ADDRESS = "192.0.2.10", "192.0.2.11"  # RFC 5737: reserved for documentation
PROVISIONER: Final = "volumes.sandbox.argosy.dev"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
SIZE: Final = {"cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "1Ti"}
GPU: Final = "nvidia.com/gpu"
GPU_TAINT: Final = {"key": GPU, "effect": "NoSchedule"}

READY: Final = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": told("no machine backs this node"),
}


def first_objects() -> Sequence[Manifest]:
    return [
        node(NAME, ADDRESS, SIZE),
        node(GPU_NAME, GPU_ADDRESS, {**SIZE, GPU: "8"}, labels={f"{GPU}.present": "true"}, taints=[GPU_TAINT]),
        storage_class("standard", "Immediate", is_default=True),
        storage_class("standard-wait", "WaitForFirstConsumer"),
    ]


def node(
    name: str,
    address: str,
    size: Mapping[str, str],
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Manifest:
    known = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    addresses = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**known, **(labels or {})}, "annotations": {SIMULATED: BY}},
        "spec": {"taints": [dict(each) for each in taints]} if taints else {},
        "status": {
            "capacity": dict(size),
            "allocatable": dict(size),
            "addresses": addresses,
            "conditions": [READY],
            "nodeInfo": _information(),
        },
    }


def _information() -> Manifest:
    words = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion")
    told_by = dict.fromkeys((*words, "kubeletVersion", "kubeProxyVersion"), "simulated")
    return {**told_by, "operatingSystem": "linux", "architecture": "amd64"}


def storage_class(name: str, mode: str, *, is_default: bool = False) -> Manifest:
    annotations = {SIMULATED: BY, **({DEFAULT_CLASS: "true"} if is_default else {})}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": mode,
        "allowVolumeExpansion": True,
    }


def is_played(found: Manifest) -> bool:
    """True if the Node is simulated; real Nodes have their own kubelet."""
    return bool(annotation(found, SIMULATED))


def address_of(found: Manifest) -> str:
    addresses = (found.get("status") or {}).get("addresses") or ()
    return next((str(each["address"]) for each in addresses if each["type"] == "InternalIP"), ADDRESS)
