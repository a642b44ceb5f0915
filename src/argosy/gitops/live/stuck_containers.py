"""Finds containers of a Pod that cannot start without a change, such as those with a wrong image.

In: a Pod, its owners. Out: why its containers do not run, and whether a new Pod would have the same image. Never: reads
a cluster; assesses the health of the Pod's owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

# k8s: the kubelet backs off after a failed pull, or cannot pull. A single ErrImagePull may be temporary.
IMAGE_FAILURES: Final = frozenset({"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
CONTAINER_STATUS_FIELDS: Final = ("initContainerStatuses", "containerStatuses")
DEPLOYMENT_REVISION_ANNOTATION: Final = (
    "deployment.kubernetes.io/revision"  # k8s: a Deployment has the one of its newest ReplicaSet
)


class WaitingContainer(NamedTuple):
    name: str
    reason: str
    message: str


def list_waiting_containers(pod: Mapping[str, Any]) -> Iterator[WaitingContainer]:
    """Yield the containers of a Pod that have not started, with the kubelet's reason."""
    status = _mapping(pod.get("status"))
    for field in CONTAINER_STATUS_FIELDS:
        containers = status.get(field)
        for container in containers if isinstance(containers, list) else ():
            container = _mapping(container)
            waiting = _mapping(_mapping(container.get("state")).get("waiting"))
            if waiting:
                reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
                yield WaitingContainer(str(container.get("name") or ""), reason, message)


def find_image_failure(pod: Mapping[str, Any]) -> WaitingContainer | None:
    """Return the first container whose image cannot be pulled."""
    return next((container for container in list_waiting_containers(pod) if container.reason in IMAGE_FAILURES), None)


def is_image_current(
    pod: Mapping[str, Any],
    container: str,
    owners: Sequence[Mapping[str, Any]],
    related_objects: Iterable[Mapping[str, Any]] = (),
) -> bool:
    """Return True if a new Pod would have the same image in this container.

    `owners` starts with the synced object. The first owner with a Pod template decides. If none has one, the image must
    appear in an owner or in a related object: a ServingRuntime holds the image of an InferenceService.
    """
    image = _find_image(pod, container)
    for owner in owners:
        spec = _mapping(owner.get("spec"))
        if spec.get("template") or spec.get("jobTemplate"):
            return _has_equal_leaf(spec, image)
    return any(_has_equal_leaf(manifest.get("spec"), image) for manifest in (*owners, *related_objects))


def is_old_replica_set(manifest: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Return True if the owner is a Deployment with a newer ReplicaSet."""
    if (manifest.get("kind"), owner.get("kind")) != ("ReplicaSet", "Deployment"):
        return False
    revision, newest = (
        _mapping(item["metadata"].get("annotations")).get(DEPLOYMENT_REVISION_ANNOTATION) for item in (manifest, owner)
    )
    return revision is not None and newest is not None and revision != newest


def _find_image(pod: Mapping[str, Any], container: str) -> str:
    spec = _mapping(pod.get("spec"))
    for field in ("initContainers", "containers"):
        for entry in spec.get(field) or ():
            if entry.get("name") == container:
                return str(entry.get("image") or "")
    return ""


def _has_equal_leaf(value: Any, text: str) -> bool:
    """Return True if the value is this text or contains it at any depth."""
    values = [value]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += value.values()
        elif isinstance(value, list):
            values += value
        elif value == text and text:
            return True
    return False


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
