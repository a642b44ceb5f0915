"""What a cluster has beside its users' objects: a Node, and StorageClasses for both ways to bind a volume.

In: nothing, or a Pod and Nodes. Out: manifests, or the Node that takes the Pod. Never: claims that a machine is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from argosy.addons.simulators.names import BY, told
from argosy.model.annotations import SIMULATED
from argosy.model.manifest import Manifest, annotation

NAME: Final = "sandbox"
ADDRESS: Final = "192.0.2.10"  # RFC 5737: for documentation, belongs to nobody
PROVISIONER: Final = "volumes.sandbox.argosy.dev"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
SIZE: Final = {"cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "1Ti"}

READY: Final = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": told("no machine is behind it")}


def first_objects() -> Sequence[Manifest]:
    return [
        node(),
        storage_class("standard", "Immediate", is_default=True),
        storage_class("standard-wait", "WaitForFirstConsumer"),
    ]


def node() -> Manifest:
    labels = {"kubernetes.io/hostname": NAME, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    addresses = [{"type": "InternalIP", "address": ADDRESS}, {"type": "Hostname", "address": NAME}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NAME, "labels": labels, "annotations": {SIMULATED: BY}},
        "spec": {},
        "status": {
            "capacity": SIZE,
            "allocatable": SIZE,
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
    """Real Nodes have a kubelet of their own."""
    return bool(annotation(found, SIMULATED))


def choose(pod: Manifest, nodes: Iterable[Manifest]) -> tuple[Manifest | None, str]:
    """The Node for a Pod, or why there is none, in the scheduler's words."""
    played = sorted((each for each in nodes if is_played(each)), key=lambda each: str(each["metadata"]["name"]))
    wanted = (pod["spec"].get("nodeSelector") or {}).items()
    cordoned = sum(1 for each in played if (each.get("spec") or {}).get("unschedulable"))
    for each in played:
        labels = each["metadata"].get("labels") or {}
        if not (each.get("spec") or {}).get("unschedulable") and all(labels.get(name) == is_ for name, is_ in wanted):
            return each, ""
    if not played:
        return None, "no nodes available to schedule pods"
    reasons = [f"{cordoned} node(s) were unschedulable"] if cordoned else []
    if len(played) > cordoned:
        reasons.append(f"{len(played) - cordoned} node(s) didn't match Pod's node affinity/selector")
    return None, f"0/{len(played)} nodes are available: {', '.join(reasons)}."


def address_of(found: Manifest) -> str:
    addresses = (found.get("status") or {}).get("addresses") or ()
    return next((str(each["address"]) for each in addresses if each["type"] == "InternalIP"), ADDRESS)
