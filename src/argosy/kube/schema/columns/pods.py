"""Table row of a Pod: ready containers, status, restarts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from argosy.kube.schema.columns.cells import (
    NONE,
    ManifestPart,
    find_condition,
    format_age,
    get_name,
    get_spec,
    get_status,
    human_duration,
    is_condition_true,
    parse_timestamp,
)

_ROW_CONDITIONS = {
    "Succeeded": ("Succeeded", "The pod has completed successfully."),
    "Failed": ("Failed", "The pod failed."),
}


class _ContainerSummary:
    """Totals over the containers of one Pod."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.ready = 0
        self.restarts = 0
        self.last_restart: datetime | None = None

    def add_restarts(self, container: ManifestPart) -> None:
        self.restarts += container.get("restartCount") or 0
        finished_at = parse_timestamp(((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt"))
        if finished_at is not None and (self.last_restart is None or finished_at > self.last_restart):
            self.last_restart = finished_at


def build_pod_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec, object_status = get_spec(manifest), get_status(manifest)
    phase = object_status.get("phase") or ""
    summary = _ContainerSummary(object_status.get("reason") or phase)
    scheduled = find_condition(manifest, "PodScheduled")
    if scheduled and scheduled.get("reason") == "SchedulingGated":
        summary.reason = "SchedulingGated"
    sidecars = {
        container.get("name")
        for container in object_spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    sidecar_summary = _ContainerSummary("")
    initializing = _summarize_init_containers(manifest, summary, sidecar_summary, sidecars)
    if not initializing or is_condition_true(manifest, "Initialized"):
        summary.restarts, summary.last_restart = sidecar_summary.restarts, sidecar_summary.last_restart
        _summarize_containers(manifest, summary)
    if manifest["metadata"].get("deletionTimestamp"):
        if object_status.get("reason") == "NodeLost":
            summary.reason = "Unknown"
        elif phase not in ("Succeeded", "Failed"):
            summary.reason = "Terminating"
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart is not None:
        restarts = f"{summary.restarts} ({human_duration((now - summary.last_restart).total_seconds())} ago)"
    total = len(object_spec.get("containers") or ()) + len(sidecars)
    ips = object_status.get("podIPs") or [{}]
    return [
        get_name(manifest),
        f"{summary.ready}/{total}",
        summary.reason,
        restarts,
        format_age(manifest, now),
        ips[0].get("ip") or NONE,
        object_spec.get("nodeName") or NONE,
        object_status.get("nominatedNodeName") or NONE,
        _format_readiness_gates(manifest),
    ]


def _format_termination(state: ManifestPart) -> str:
    if state.get("reason"):
        return str(state["reason"])
    return f"Signal:{state['signal']}" if state.get("signal") else f"ExitCode:{state.get('exitCode') or 0}"


def _summarize_init_containers(
    manifest: ManifestPart, summary: _ContainerSummary, sidecar_summary: _ContainerSummary, sidecars: set[Any]
) -> bool:
    """Return True if the Pod is still initializing; the first unfinished init container sets the status."""
    total = len(get_spec(manifest).get("initContainers") or ())
    for index, container in enumerate(get_status(manifest).get("initContainerStatuses") or ()):
        summary.add_restarts(container)
        sidecar = container.get("name") in sidecars
        if sidecar:
            sidecar_summary.add_restarts(container)
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            summary.ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            summary.reason = f"Init:{_format_termination(terminated)}"
        elif waiting and waiting != "PodInitializing":
            summary.reason = f"Init:{waiting}"
        else:
            summary.reason = f"Init:{index}/{total}"
        return True
    return False


def _summarize_containers(manifest: ManifestPart, summary: _ContainerSummary) -> None:
    running = False
    for container in reversed(get_status(manifest).get("containerStatuses") or []):
        summary.add_restarts(container)
        state = container.get("state") or {}
        waiting = (state.get("waiting") or {}).get("reason")
        if waiting:
            summary.reason = waiting
        elif state.get("terminated") is not None:
            summary.reason = _format_termination(state["terminated"])
        elif container.get("ready") and state.get("running") is not None:
            running = True
            summary.ready += 1
    if summary.reason == "Completed" and running:
        summary.reason = "Running" if is_condition_true(manifest, "Ready") else "NotReady"


def _format_readiness_gates(manifest: ManifestPart) -> str:
    gates = get_spec(manifest).get("readinessGates") or ()
    if not gates:
        return NONE
    passed = sum(is_condition_true(manifest, gate.get("conditionType") or "") for gate in gates)
    return f"{passed}/{len(gates)}"


def build_row_conditions(manifest: ManifestPart) -> list[ManifestPart]:
    """Return the conditions of a table row: Completed for a finished Pod."""
    reason_and_message = _ROW_CONDITIONS.get(get_status(manifest).get("phase") or "")
    if reason_and_message is None:
        return []
    return [{"type": "Completed", "status": "True", "reason": reason_and_message[0], "message": reason_and_message[1]}]
