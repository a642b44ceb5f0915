"""Table row of a Pod: ready containers, status, restarts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from argosy.kube.schema.columns.cells import (
    NONE,
    Part,
    age,
    condition,
    holds,
    human_duration,
    moment,
    name,
    spec,
    status,
)

_ROW_CONDITIONS = {
    "Succeeded": ("Succeeded", "The pod has completed successfully."),
    "Failed": ("Failed", "The pod failed."),
}


class _Count:
    """Totals over the containers of one Pod."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.ready = 0
        self.restarts = 0
        self.last: datetime | None = None

    def restarted(self, container: Part) -> None:
        self.restarts += container.get("restartCount") or 0
        ended = moment(((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt"))
        if ended is not None and (self.last is None or ended > self.last):
            self.last = ended


def pod(manifest: Part, now: datetime) -> list[Any]:
    what, how = spec(manifest), status(manifest)
    phase = how.get("phase") or ""
    count = _Count(how.get("reason") or phase)
    scheduled = condition(manifest, "PodScheduled")
    if scheduled and scheduled.get("reason") == "SchedulingGated":
        count.reason = "SchedulingGated"
    sidecars = {each.get("name") for each in what.get("initContainers") or () if each.get("restartPolicy") == "Always"}
    beside = _Count("")
    initializing = _init(manifest, count, beside, sidecars)
    if not initializing or holds(manifest, "Initialized"):
        count.restarts, count.last = beside.restarts, beside.last
        _main(manifest, count)
    if manifest["metadata"].get("deletionTimestamp"):
        if how.get("reason") == "NodeLost":
            count.reason = "Unknown"
        elif phase not in ("Succeeded", "Failed"):
            count.reason = "Terminating"
    restarts = str(count.restarts)
    if count.restarts and count.last is not None:
        restarts = f"{count.restarts} ({human_duration((now - count.last).total_seconds())} ago)"
    total = len(what.get("containers") or ()) + len(sidecars)
    ips = how.get("podIPs") or [{}]
    return [
        name(manifest),
        f"{count.ready}/{total}",
        count.reason,
        restarts,
        age(manifest, now),
        ips[0].get("ip") or NONE,
        what.get("nodeName") or NONE,
        how.get("nominatedNodeName") or NONE,
        _gates(manifest),
    ]


def _ended(state: Part) -> str:
    if state.get("reason"):
        return str(state["reason"])
    return f"Signal:{state['signal']}" if state.get("signal") else f"ExitCode:{state.get('exitCode') or 0}"


def _init(manifest: Part, count: _Count, beside: _Count, sidecars: set[Any]) -> bool:
    """Return True if the Pod is still initializing; the first unfinished init container sets the status."""
    total = len(spec(manifest).get("initContainers") or ())
    for index, container in enumerate(status(manifest).get("initContainerStatuses") or ()):
        count.restarted(container)
        sidecar = container.get("name") in sidecars
        if sidecar:
            beside.restarted(container)
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason")
        if ended is not None and not ended.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            count.ready += bool(container.get("ready"))
            continue
        if ended is not None:
            count.reason = f"Init:{_ended(ended)}"
        elif waiting and waiting != "PodInitializing":
            count.reason = f"Init:{waiting}"
        else:
            count.reason = f"Init:{index}/{total}"
        return True
    return False


def _main(manifest: Part, count: _Count) -> None:
    running = False
    for container in reversed(status(manifest).get("containerStatuses") or []):
        count.restarted(container)
        state = container.get("state") or {}
        waiting = (state.get("waiting") or {}).get("reason")
        if waiting:
            count.reason = waiting
        elif state.get("terminated") is not None:
            count.reason = _ended(state["terminated"])
        elif container.get("ready") and state.get("running") is not None:
            running = True
            count.ready += 1
    if count.reason == "Completed" and running:
        count.reason = "Running" if holds(manifest, "Ready") else "NotReady"


def _gates(manifest: Part) -> str:
    gates = spec(manifest).get("readinessGates") or ()
    if not gates:
        return NONE
    passed = sum(holds(manifest, gate.get("conditionType") or "") for gate in gates)
    return f"{passed}/{len(gates)}"


def row_conditions(manifest: Part) -> list[Part]:
    """Return the conditions of a table row: Completed for a finished Pod."""
    found = _ROW_CONDITIONS.get(status(manifest).get("phase") or "")
    if found is None:
        return []
    return [{"type": "Completed", "status": "True", "reason": found[0], "message": found[1]}]
