"""Builds the Pod status that a kubelet would write.

In: a Pod, the state of its containers, the address of its Node. Out: its status. Never: reads a clock; drops conditions
that others wrote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.sandbox.simulators.containers import (
    CONFIG_ERROR_REASON,
    CONTAINER_CREATING_STATE,
    IMAGE_PULL_REASONS,
    ContainersState,
    PodSimulation,
)
from argosy.sandbox.simulators.missing_images import has_missing_image, is_missing
from argosy.sandbox.simulators.owner_references_and_marks import (
    SIMULATED_CONDITION,
    SIMULATED_NOTE,
    append_simulated_note,
)

PodStatus = dict[str, Any]
EVICTED_REASON = "Evicted"
POD_INITIALIZING_STATE = {"waiting": {"reason": "PodInitializing"}}


def build_pod_status(
    simulation: PodSimulation, containers_state: ContainersState, node_address: str, *, note: str = SIMULATED_NOTE
) -> PodStatus:
    """Build the status of a Pod on a Node. `note` says in a condition how its containers run.

    k8s: a Pod that runs or succeeded has no message, and Argo CD shows it as the message of a hook.
    """
    pod, spec = simulation.pod, simulation.pod["spec"]
    previous = pod.get("status") or {}
    started_at = previous.get("startTime") or simulation.timestamps.format_and_remember(simulation.uid, simulation.now)
    ip = node_address if spec.get("hostNetwork") else build_pod_ip(simulation.uid)
    has_address = containers_state.phase != "Pending"
    new_status: PodStatus = {
        "phase": containers_state.phase,
        "message": None,
        "reason": None,
        "startTime": started_at,
        "hostIP": node_address,
        "hostIPs": [{"ip": node_address}],
        "podIP": ip if has_address else None,
        "podIPs": [{"ip": ip}] if has_address else None,
        "conditions": _build_conditions(simulation, containers_state, note),
        "containerStatuses": [
            _build_container_status(container, containers_state, pod) for container in spec["containers"]
        ],
    }
    if spec.get("initContainers"):
        new_status["initContainerStatuses"] = [
            _build_init_container_status(container, started_at, containers_state, pod)
            for container in spec["initContainers"]
        ]
    return new_status


def build_failed_status(pod: Manifest, reason: str, message: str, now: str) -> PodStatus:
    """Build the status of a Pod that was removed from its Node; its containers are terminated."""
    containers = [
        {
            **container_status,
            "ready": False,
            "started": False,
            "state": _build_terminated_state(container_status.get("state") or {}, now),
        }
        for container_status in (pod.get("status") or {}).get("containerStatuses") or ()
    ]
    failed_fields = {"status": "False", "reason": "PodFailed"}
    conditions = [{"type": "Ready", **failed_fields}, {"type": "ContainersReady", **failed_fields}]
    if reason == EVICTED_REASON:
        by_kubelet = {"status": "True", "reason": "TerminationByKubelet", "message": append_simulated_note(message)}
        conditions.append({"type": "DisruptionTarget", **by_kubelet})
    return {
        "phase": "Failed",
        "reason": reason,
        "message": append_simulated_note(message),
        "conditions": merge_conditions(pod, conditions, now),
        "containerStatuses": containers or None,
    }


def build_unschedulable_status(pod: Manifest, reason: str, now: str) -> PodStatus:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": append_simulated_note(reason),
    }
    return {"conditions": merge_conditions(pod, [condition], now)}


def build_config_error_status(simulation: PodSimulation, problem: str, node_address: str) -> PodStatus:
    """Show an invalid annotation as CreateContainerConfigError, where people look when a Pod does not start."""
    waiting = {"waiting": {"reason": CONFIG_ERROR_REASON, "message": append_simulated_note(problem)}}
    return build_pod_status(simulation, ContainersState("Pending", waiting), node_address)


def merge_conditions(pod: Manifest, new_conditions: list[dict[str, Any]], now: str) -> list[dict[str, Any]]:
    """Merge conditions into the existing ones and set lastTransitionTime."""
    conditions_by_type = {entry["type"]: entry for entry in (pod.get("status") or {}).get("conditions") or ()}
    for condition in new_conditions:
        previous = conditions_by_type.get(condition["type"])
        is_unchanged = previous is not None and previous["status"] == condition["status"]
        transitioned_at = previous.get("lastTransitionTime") if previous is not None and is_unchanged else None
        conditions_by_type[condition["type"]] = {**condition, "lastTransitionTime": transitioned_at or now}
    return list(conditions_by_type.values())


def build_pod_ip(uid: str) -> str:
    """Return a stable IP per uid. Two Pods may share one, because nothing listens there."""
    first, second, third = hashlib.sha256(uid.encode()).digest()[:3]
    return f"10.{first}.{second}.{1 + third % 254}"


def _build_conditions(simulation: PodSimulation, containers_state: ContainersState, note: str) -> list[dict[str, Any]]:
    is_over = containers_state.phase in ("Succeeded", "Failed")
    reason: PodStatus = {}
    if is_over:
        reason = {"reason": "PodCompleted" if containers_state.phase == "Succeeded" else "PodFailed"}
    elif not containers_state.is_ready:
        names = " ".join(str(container["name"]) for container in simulation.pod["spec"]["containers"])
        reason = {
            "reason": "ContainersNotReady",
            "message": append_simulated_note(f"containers with unready status: [{names}]"),
        }
    containers_ready = {"status": "True" if containers_state.is_ready else "False", **reason}
    ready = containers_ready
    if containers_state.is_ready and (closed_gate := _find_closed_readiness_gate(simulation.pod)):
        message = append_simulated_note(f'the status of pod readiness gate {closed_gate!r} is not "True"')
        ready = {"status": "False", "reason": "ReadinessGatesNotReady", "message": message}
    new_conditions = [
        {"type": "PodReadyToStartContainers", "status": "False" if is_over else "True"},
        _build_initialized_condition(simulation, containers_state),
        {"type": "Ready", **ready},
        {"type": "ContainersReady", **containers_ready},
        {"type": "PodScheduled", "status": "True"},
        {"type": SIMULATED_CONDITION, "status": "True", "reason": "Simulated", "message": note},
    ]
    return merge_conditions(simulation.pod, new_conditions, format_timestamp(simulation.now))


def _are_init_containers_done(containers_state: ContainersState, pod: Manifest) -> bool:
    """True if the init containers have ended; then a problem is shown on the main containers."""
    reason = (containers_state.state.get("waiting") or {}).get("reason")
    if reason in IMAGE_PULL_REASONS:
        return not has_missing_image(pod, "initContainers")
    return containers_state.phase != "Pending" or reason == CONFIG_ERROR_REASON


def _build_initialized_condition(simulation: PodSimulation, containers_state: ContainersState) -> PodStatus:
    names = [str(container["name"]) for container in simulation.pod["spec"].get("initContainers") or ()]
    if not names or _are_init_containers_done(containers_state, simulation.pod):
        return {"type": "Initialized", "status": "True"}
    message = append_simulated_note(f"containers with incomplete status: [{' '.join(names)}]")
    return {"type": "Initialized", "status": "False", "reason": "ContainersNotInitialized", "message": message}


def _find_closed_readiness_gate(pod: Manifest) -> str:
    gates = [str(entry["conditionType"]) for entry in pod["spec"].get("readinessGates") or ()]
    conditions = (pod.get("status") or {}).get("conditions") or ()
    true_conditions = {entry["type"] for entry in conditions if entry["status"] == "True"}
    return next((gate for gate in gates if gate not in true_conditions), "")


def _choose_container_state(container: Manifest, containers_state: ContainersState, pod: Manifest) -> Mapping[str, Any]:
    """Return the state of one container; if only some images are missing, the other containers wait in
    ContainerCreating."""
    if (containers_state.state.get("waiting") or {}).get("reason") not in IMAGE_PULL_REASONS:
        return containers_state.state
    if has_missing_image(pod, "initContainers"):
        return POD_INITIALIZING_STATE
    is_own_failure = is_missing(str(container.get("image") or "")) or not has_missing_image(pod)
    return containers_state.state if is_own_failure else CONTAINER_CREATING_STATE


def _build_container_status(container: Manifest, containers_state: ContainersState, pod: Manifest) -> PodStatus:
    is_running, uid = "running" in containers_state.state, pod["metadata"]["uid"]
    return {
        "name": container["name"],
        "image": container.get("image") or "",
        "imageID": f"simulated://{container.get('image') or ''}" if containers_state.phase != "Pending" else "",
        "containerID": f"simulated://{uid}/{container['name']}" if containers_state.phase != "Pending" else None,
        "ready": containers_state.is_ready,
        "started": is_running,
        "restartCount": containers_state.restart_count,
        "state": _fill_placeholders(_choose_container_state(container, containers_state, pod), container),
        "lastState": _fill_placeholders(containers_state.last_state, container),
    }


def _build_init_container_status(
    container: Manifest, started_at: str, containers_state: ContainersState, pod: Manifest
) -> PodStatus:
    """Build the status of an init container: terminated, or running if it is a sidecar."""
    if not _are_init_containers_done(containers_state, pod):
        is_image_missing = is_missing(str(container.get("image") or "")) and "waiting" in containers_state.state
        state: PodStatus = containers_state.state if is_image_missing else POD_INITIALIZING_STATE
    elif container.get("restartPolicy") == "Always" and containers_state.phase in ("Pending", "Running"):
        state = {"running": {"startedAt": started_at}}
    else:
        terminated = {"exitCode": 0, "reason": "Completed", "startedAt": started_at, "finishedAt": started_at}
        state = {"terminated": terminated}
    is_done = "waiting" not in state
    container_status = _build_container_status(
        container, ContainersState("Running" if is_done else "Pending", state, is_ready=is_done), pod
    )
    return {
        **container_status,
        "state": _fill_placeholders(state, container),
        "restartCount": 0,
        "started": "running" in state,
    }


def _fill_placeholders(state: Mapping[str, Any], container: Manifest) -> PodStatus:
    """Fill in image and name placeholders in messages; a message read from a status has none."""
    placeholders = {"{image}": str(container.get("image") or ""), "{name}": str(container["name"])}
    filled: PodStatus = {}
    for state_name, details in state.items():
        message = str(details.get("message") or "")
        for placeholder, value in placeholders.items():
            message = message.replace(placeholder, value)
        filled[state_name] = {**details, **({"message": message} if message else {})}
    return filled


def _build_terminated_state(state: Mapping[str, Any], now: str) -> PodStatus:
    if "terminated" in state:
        return dict(state)
    started_at = (state.get("running") or {}).get("startedAt")
    terminated = {"exitCode": 137, "reason": "Error", "message": SIMULATED_NOTE, "finishedAt": now}
    return {"terminated": {**terminated, **({"startedAt": started_at} if started_at else {})}}
