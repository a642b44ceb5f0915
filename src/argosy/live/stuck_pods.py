"""Containers that wait for something that will not come by itself.

In: a Pod. Out: why its containers do not run. Never: asks a cluster; judges the health of what owns the Pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

# k8s: the first try failed and the kubelet pauses, or there is nothing to try. ErrImagePull alone may be a slip.
IMAGE_FAILURES: Final = frozenset({"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
CONTAINER_LISTS: Final = ("initContainerStatuses", "containerStatuses")


class WaitingContainer(NamedTuple):
    name: str
    reason: str
    message: str


def waiting_containers(pod: Mapping[str, Any]) -> Iterator[WaitingContainer]:
    """Yield the containers of a Pod that have not started, with the kubelet's reason."""
    status = _mapping(pod.get("status"))
    for field in CONTAINER_LISTS:
        containers = status.get(field)
        for container in containers if isinstance(containers, list) else ():
            container = _mapping(container)
            waiting = _mapping(_mapping(container.get("state")).get("waiting"))
            if waiting:
                reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
                yield WaitingContainer(str(container.get("name") or ""), reason, message)


def find_image_failure(pod: Mapping[str, Any]) -> WaitingContainer | None:
    """Return the first container whose image cannot be pulled."""
    return next((found for found in waiting_containers(pod) if found.reason in IMAGE_FAILURES), None)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
