"""Images and status text of a Pod for the resource tree.

In: a Pod, or an object with a Pod template. Out: images, and text like kubectl's STATUS column. Never: assesses health.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.kube.objects import Manifest

Info = tuple[tuple[str, str], ...]


def images(pod_spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the distinct images, sorted."""
    containers = [*(pod_spec.get("initContainers") or ()), *(pod_spec.get("containers") or ())]
    return tuple(sorted({each["image"] for each in containers if each.get("image")}))


def images_of(manifest: Manifest) -> tuple[str, ...]:
    """Return the images of a Pod, or of any kind with a Pod template."""
    spec = manifest.get("spec") or {}
    for path in ((), ("template", "spec"), ("jobTemplate", "spec", "template", "spec")):
        inner: Any = spec
        for step in path:
            inner = inner.get(step) if isinstance(inner, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("containers"), list):
            return images(inner)
    return ()


def info(pod: Manifest) -> Info:
    """argo: same names and order."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    first, main = status.get("initContainerStatuses") or [], status.get("containerStatuses") or []
    is_starting, reason, up = _starting(spec, first, _phase(status))
    counted = [*first]
    if not is_starting or _is_true(status, "Initialized"):
        reason, more = _running(main, reason)
        up += more
        counted += main
    restarts = sum(each.get("restartCount") or 0 for each in counted)
    total = len(spec.get("containers") or ()) + sum(map(_stays, spec.get("initContainers") or ()))
    return tuple(
        (name, text)
        for name, text in (
            ("Status Reason", _ending(pod, status, reason)),
            ("Node", spec.get("nodeName") or ""),
            ("Containers", f"{up}/{total}"),
            ("Restart Count", str(restarts) if restarts else ""),
        )
        if text or name == "Node"
    )


def _phase(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "")


def _starting(spec: Mapping[str, Any], statuses: Sequence[Mapping[str, Any]], reason: str) -> tuple[bool, str, int]:
    """Return (an init container still blocks the Pod, reason, number of ready sidecars)."""
    of = {each.get("name"): each for each in spec.get("initContainers") or ()}
    up = 0
    for place, each in enumerate(statuses):
        state = each.get("state") or {}
        ended, waits = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and not ended.get("exitCode"):
            continue
        if _stays(of.get(each.get("name")) or {}) and each.get("started"):
            up += bool(each.get("ready"))
            continue
        if ended is not None:
            return True, f"Init:{_ended(ended)}", up
        if waits.get("reason") and waits["reason"] != "PodInitializing":
            return True, f"Init:{waits['reason']}", up
        return True, f"Init:{place}/{len(of)}", up
    return False, reason, up


def _running(statuses: Sequence[Mapping[str, Any]], reason: str) -> tuple[str, int]:
    up = 0
    for each in statuses[::-1]:  # k8s: the first container decides, so it comes last
        state = each.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif state.get("terminated") is not None:
            reason = _ended(state["terminated"])
        elif each.get("ready") and state.get("running") is not None:
            up += 1
    return ("Running" if reason == "Completed" and up else reason), up


def _ending(pod: Manifest, status: Mapping[str, Any], reason: str) -> str:
    if not pod["metadata"].get("deletionTimestamp"):
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in ("Failed", "Succeeded") else "Terminating"


def _ended(terminated: Mapping[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    return f"Signal:{terminated['signal']}" if terminated.get("signal") else f"ExitCode:{terminated.get('exitCode', 0)}"


def _stays(init_container: Mapping[str, Any]) -> bool:
    """k8s: an init container with restartPolicy Always is a sidecar."""
    return init_container.get("restartPolicy") == "Always"


def _is_true(status: Mapping[str, Any], condition: str) -> bool:
    return any(
        each.get("type") == condition and each.get("status") == "True" for each in status.get("conditions") or ()
    )
