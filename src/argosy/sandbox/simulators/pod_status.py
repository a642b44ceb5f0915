"""Builds the Pod status that a kubelet would write.

In: a Pod, the state of its containers, the address of its Node. Out: its status. Never: reads a clock; drops conditions
that others wrote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import BY, told
from argosy.sandbox.simulators.containers import CREATING, NOT_CONFIGURED, NOT_PULLED, Acting, Actor
from argosy.sandbox.simulators.images import is_missing, missing_of
from argosy.sandbox.simulators.timestamps import stamp

Status = dict[str, Any]
EVICTED = "Evicted"
INITIALIZING = {"waiting": {"reason": "PodInitializing"}}


def status_of(actor: Actor, acting: Acting, address: str) -> Status:
    pod, spec = actor.pod, actor.pod["spec"]
    known = pod.get("status") or {}
    began = known.get("startTime") or actor.moments.write(actor.uid, actor.now)
    ip = address if spec.get("hostNetwork") else address_for(actor.uid)
    has_address = acting.phase != "Pending"
    wanted: Status = {
        "phase": acting.phase,
        "message": BY,
        "reason": None,
        "startTime": began,
        "hostIP": address,
        "hostIPs": [{"ip": address}],
        "podIP": ip if has_address else None,
        "podIPs": [{"ip": ip}] if has_address else None,
        "conditions": _conditions(actor, acting),
        "containerStatuses": [_container(each, acting, pod) for each in spec["containers"]],
    }
    if spec.get("initContainers"):
        wanted["initContainerStatuses"] = [_first(each, began, acting, pod) for each in spec["initContainers"]]
    return wanted


def failed(pod: Manifest, reason: str, message: str, now: str) -> Status:
    """Build the status of a Pod that was removed from its Node; its containers are terminated."""
    containers = [
        {**each, "ready": False, "started": False, "state": _ended(each.get("state") or {}, now)}
        for each in (pod.get("status") or {}).get("containerStatuses") or ()
    ]
    over = {"status": "False", "reason": "PodFailed", "message": BY}
    conditions = [{"type": "Ready", **over}, {"type": "ContainersReady", **over}]
    if reason == EVICTED:
        by_kubelet = {"status": "True", "reason": "TerminationByKubelet", "message": told(message)}
        conditions.append({"type": "DisruptionTarget", **by_kubelet})
    return {
        "phase": "Failed",
        "reason": reason,
        "message": told(message),
        "conditions": merged(pod, conditions, now),
        "containerStatuses": containers or None,
    }


def unscheduled(pod: Manifest, why: str, now: str) -> Status:
    wanted = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": told(why)}
    return {"conditions": merged(pod, [wanted], now)}


def not_understood(actor: Actor, why: str, address: str) -> Status:
    """Show an invalid annotation as CreateContainerConfigError, where people look when a Pod does not start."""
    waiting = {"waiting": {"reason": NOT_CONFIGURED, "message": told(why)}}
    return status_of(actor, Acting("Pending", waiting), address)


def merged(pod: Manifest, wanted: list[dict[str, Any]], now: str) -> list[dict[str, Any]]:
    """Merge conditions into the existing ones and set lastTransitionTime."""
    known = {each["type"]: each for each in (pod.get("status") or {}).get("conditions") or ()}
    for condition in wanted:
        before = known.get(condition["type"])
        is_as_before = before is not None and before["status"] == condition["status"]
        since = before.get("lastTransitionTime") if before is not None and is_as_before else None
        known[condition["type"]] = {**condition, "lastTransitionTime": since or now}
    return list(known.values())


def address_for(uid: str) -> str:
    """Return a stable IP per uid. Two Pods may share one, because nothing listens there."""
    first, second, third = hashlib.sha256(uid.encode()).digest()[:3]
    return f"10.{first}.{second}.{1 + third % 254}"


def _conditions(actor: Actor, acting: Acting) -> list[dict[str, Any]]:
    is_over = acting.phase in ("Succeeded", "Failed")
    reason: Status = {}
    if is_over:
        reason = {"reason": "PodCompleted" if acting.phase == "Succeeded" else "PodFailed", "message": BY}
    elif not acting.ready:
        names = " ".join(str(each["name"]) for each in actor.pod["spec"]["containers"])
        reason = {"reason": "ContainersNotReady", "message": told(f"containers with unready status: [{names}]")}
    containers = {"status": "True" if acting.ready else "False", **reason}
    ready = containers
    if acting.ready and (missing := _closed_gates(actor.pod)):
        message = told(f'the status of pod readiness gate {missing!r} is not "True"')
        ready = {"status": "False", "reason": "ReadinessGatesNotReady", "message": message}
    wanted = [
        {"type": "PodReadyToStartContainers", "status": "False" if is_over else "True"},
        _initialized(actor, acting),
        {"type": "Ready", **ready},
        {"type": "ContainersReady", **containers},
        {"type": "PodScheduled", "status": "True"},
    ]
    return merged(actor.pod, wanted, stamp(actor.now))


def _is_past_first(acting: Acting, pod: Manifest) -> bool:
    """True if the init containers have ended; then a problem is shown on the main containers."""
    reason = (acting.state.get("waiting") or {}).get("reason")
    if reason in NOT_PULLED:
        return not missing_of(pod, "initContainers")
    return acting.phase != "Pending" or reason == NOT_CONFIGURED


def _initialized(actor: Actor, acting: Acting) -> Status:
    names = [str(each["name"]) for each in actor.pod["spec"].get("initContainers") or ()]
    if not names or _is_past_first(acting, actor.pod):
        return {"type": "Initialized", "status": "True"}
    message = told(f"containers with incomplete status: [{' '.join(names)}]")
    return {"type": "Initialized", "status": "False", "reason": "ContainersNotInitialized", "message": message}


def _closed_gates(pod: Manifest) -> str:
    gates = [str(each["conditionType"]) for each in pod["spec"].get("readinessGates") or ()]
    conditions = (pod.get("status") or {}).get("conditions") or ()
    open_ = {each["type"] for each in conditions if each["status"] == "True"}
    return next((gate for gate in gates if gate not in open_), "")


def _state(container: Manifest, acting: Acting, pod: Manifest) -> Mapping[str, Any]:
    """Return the state of one container; if only some images are missing, the other containers wait in
    ContainerCreating."""
    if (acting.state.get("waiting") or {}).get("reason") not in NOT_PULLED:
        return acting.state
    if missing_of(pod, "initContainers"):
        return INITIALIZING
    is_its_own = is_missing(str(container.get("image") or "")) or not missing_of(pod)
    return acting.state if is_its_own else CREATING


def _container(container: Manifest, acting: Acting, pod: Manifest) -> Status:
    is_running, uid = "running" in acting.state, pod["metadata"]["uid"]
    return {
        "name": container["name"],
        "image": container.get("image") or "",
        "imageID": f"simulated://{container.get('image') or ''}" if acting.phase != "Pending" else "",
        "containerID": f"simulated://{uid}/{container['name']}" if acting.phase != "Pending" else None,
        "ready": acting.ready,
        "started": is_running,
        "restartCount": acting.restarts,
        "state": _filled(_state(container, acting, pod), container),
        "lastState": _filled(acting.last, container),
    }


def _first(container: Manifest, began: str, acting: Acting, pod: Manifest) -> Status:
    """Build the status of an init container: terminated, or running if it is a sidecar."""
    if not _is_past_first(acting, pod):
        is_to_blame = is_missing(str(container.get("image") or "")) and "waiting" in acting.state
        state: Status = acting.state if is_to_blame else INITIALIZING
    elif container.get("restartPolicy") == "Always" and acting.phase in ("Pending", "Running"):
        state = {"running": {"startedAt": began}}
    else:
        end = {"exitCode": 0, "reason": "Completed", "startedAt": began, "finishedAt": began}
        state = {"terminated": end}
    is_done = "waiting" not in state
    made = _container(container, Acting("Running" if is_done else "Pending", state, ready=is_done), pod)
    return {**made, "state": _filled(state, container), "restartCount": 0, "started": "running" in state}


def _filled(state: Mapping[str, Any], container: Manifest) -> Status:
    """Fill in image and name placeholders in messages; a message read from a status has none."""
    words = {"{image}": str(container.get("image") or ""), "{name}": str(container["name"])}
    made: Status = {}
    for which, about in state.items():
        message = str(about.get("message") or "")
        for word, value in words.items():
            message = message.replace(word, value)
        made[which] = {**about, **({"message": message} if message else {})}
    return made


def _ended(state: Mapping[str, Any], now: str) -> Status:
    if "terminated" in state:
        return dict(state)
    began = (state.get("running") or {}).get("startedAt")
    end = {"exitCode": 137, "reason": "Error", "message": BY, "finishedAt": now}
    return {"terminated": {**end, **({"startedAt": began} if began else {})}}
