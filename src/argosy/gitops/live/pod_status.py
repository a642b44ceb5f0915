"""Images and status text of a Pod for the resource tree.

In: a Pod, or an object with a Pod template. Out: images, and text like kubectl's STATUS column. Never: assesses health.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.kube.objects import Manifest

PodInfo = tuple[tuple[str, str], ...]


def list_pod_spec_images(pod_spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the distinct images, sorted."""
    containers = [*(pod_spec.get("initContainers") or ()), *(pod_spec.get("containers") or ())]
    return tuple(sorted({container["image"] for container in containers if container.get("image")}))


def list_images(manifest: Manifest) -> tuple[str, ...]:
    """Return the images of a Pod, or of any kind with a Pod template."""
    spec = manifest.get("spec") or {}
    for path in ((), ("template", "spec"), ("jobTemplate", "spec", "template", "spec")):
        value: Any = spec
        for field in path:
            value = value.get(field) if isinstance(value, dict) else None
        if isinstance(value, dict) and isinstance(value.get("containers"), list):
            return list_pod_spec_images(value)
    return ()


def build_pod_info(pod: Manifest) -> PodInfo:
    """argo: same names and order."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    init_statuses, main_statuses = status.get("initContainerStatuses") or [], status.get("containerStatuses") or []
    is_initializing, reason, ready = _summarize_init_containers(spec, init_statuses, _read_initial_reason(status))
    counted_statuses = [*init_statuses]
    if not is_initializing or _is_condition_true(status, "Initialized"):
        reason, running = _summarize_containers(main_statuses, reason)
        ready += running
        counted_statuses += main_statuses
    restarts = sum(container_status.get("restartCount") or 0 for container_status in counted_statuses)
    total = len(spec.get("containers") or ()) + sum(map(_is_sidecar, spec.get("initContainers") or ()))
    return tuple(
        (name, text)
        for name, text in (
            ("Status Reason", _final_reason(pod, status, reason)),
            ("Node", spec.get("nodeName") or ""),
            ("Containers", f"{ready}/{total}"),
            ("Restart Count", str(restarts) if restarts else ""),
        )
        if text or name == "Node"
    )


def _read_initial_reason(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "")


def _summarize_init_containers(
    spec: Mapping[str, Any], statuses: Sequence[Mapping[str, Any]], reason: str
) -> tuple[bool, str, int]:
    """Return (an init container still blocks the Pod, reason, number of ready sidecars)."""
    init_containers = {
        container_status.get("name"): container_status for container_status in spec.get("initContainers") or ()
    }
    ready = 0
    for position, container_status in enumerate(statuses):
        state = container_status.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if _is_sidecar(init_containers.get(container_status.get("name")) or {}) and container_status.get("started"):
            ready += bool(container_status.get("ready"))
            continue
        if terminated is not None:
            return True, f"Init:{_termination_reason(terminated)}", ready
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return True, f"Init:{waiting['reason']}", ready
        return True, f"Init:{position}/{len(init_containers)}", ready
    return False, reason, ready


def _summarize_containers(statuses: Sequence[Mapping[str, Any]], reason: str) -> tuple[str, int]:
    ready = 0
    for container_status in statuses[::-1]:  # k8s: the first container decides, so it comes last
        state = container_status.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif state.get("terminated") is not None:
            reason = _termination_reason(state["terminated"])
        elif container_status.get("ready") and state.get("running") is not None:
            ready += 1
    return ("Running" if reason == "Completed" and ready else reason), ready


def _final_reason(pod: Manifest, status: Mapping[str, Any], reason: str) -> str:
    if not pod["metadata"].get("deletionTimestamp"):
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in ("Failed", "Succeeded") else "Terminating"


def _termination_reason(terminated: Mapping[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    return f"Signal:{terminated['signal']}" if terminated.get("signal") else f"ExitCode:{terminated.get('exitCode', 0)}"


def _is_sidecar(init_container: Mapping[str, Any]) -> bool:
    """k8s: an init container with restartPolicy Always is a sidecar."""
    return init_container.get("restartPolicy") == "Always"


def _is_condition_true(status: Mapping[str, Any], condition: str) -> bool:
    return any(
        entry.get("type") == condition and entry.get("status") == "True" for entry in status.get("conditions") or ()
    )
