"""Readiness of a served model as a chain of steps: runtime, storage, load, container, route.

In: an InferenceService and its Pods. Out: steps with states and reasons. Never: I/O; guesses what no status says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.gitops.live.inference_service import describe_invalid_spec, read_served_model
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest

OK, BAD, BUSY, WAITING = "ok", "bad", "busy", "waits"
SERVER_CONTAINER: Final = "kserve-container"
# Words in failure messages that mean storage.
STORAGE_FAILURE_WORDS: Final = ("persistentvolumeclaim", "storage", "download", "bucket")
DOWNLOAD_CONTAINERS: Final = ("storage-initializer", "modelcar-init")
ROUTE_CONDITIONS: Final = ("IngressReady", "RoutesReady", "PredictorRouteReady")


@dataclass(frozen=True)
class ReadinessStep:
    name: str
    about: str
    state: str  # ok, bad, busy, waits
    why: str = ""

    @property
    def is_open(self) -> bool:
        return self.state in (BAD, BUSY)


def build_readiness_steps(service: Manifest, pods: Sequence[Manifest]) -> tuple[ReadinessStep, ...]:
    """Steps of the readiness chain; every step after a failed one waits."""
    model = read_served_model(service)
    steps = [
        _runtime_step(service, model.runtime),
        _storage_step(service, model.source, pods),
        _load_step(service),
        _container_step(pods),
        _route_step(service, model.url),
    ]
    failed_index = next((index for index, step in enumerate(steps) if step.state == BAD), len(steps))
    return tuple(
        replace(step, state=WAITING, why=step.why if step.state != BAD else "") if index > failed_index else step
        for index, step in enumerate(steps)
    )


def _runtime_step(service: Manifest, name: str) -> ReadinessStep:
    why = describe_invalid_spec(service)
    return ReadinessStep("runtime", name or "not selected yet", BAD if why else OK if name else BUSY, why)


def _storage_step(service: Manifest, source: str, pods: Sequence[Manifest]) -> ReadinessStep:
    about = source or "inside the container's image"
    states = [
        _read_container_state(status)
        for pod in pods
        for status in _list_container_statuses(pod, "initContainerStatuses", DOWNLOAD_CONTAINERS)
    ]
    if any(state == BAD for state, _ in states):
        return ReadinessStep("storage", about, BAD, next(why for state, why in states if state == BAD))
    if any(state == BUSY for state, _ in states):
        return ReadinessStep("storage", about, BUSY, next(why for state, why in states if state == BUSY))
    failure = _read_last_failure(service)
    if not describe_invalid_spec(service) and any(word in failure.lower() for word in STORAGE_FAILURE_WORDS):
        return ReadinessStep("storage", about, BAD, failure)
    return ReadinessStep("storage", about, OK if pods else WAITING, "" if pods else "no Pod has started to download it")


def _load_step(service: Manifest) -> ReadinessStep:
    states = as_mapping(_read_model_status(service).get("states"))
    target = str(states.get("targetModelState") or states.get("activeModelState") or "")
    failure = _read_last_failure(service)
    if target == "FailedToLoad":
        return ReadinessStep("load", target, BAD, failure or "the model server could not load it; see its logs")
    if target == "Loaded":
        return ReadinessStep("load", target, OK)
    return ReadinessStep(
        "load", target or "not started", BUSY if target in ("Pending", "Loading", "Standby") else WAITING, failure
    )


def _container_step(pods: Sequence[Manifest]) -> ReadinessStep:
    statuses = [status for pod in pods for status in _list_container_statuses(pod, "containerStatuses")]
    if not statuses:
        why = next(filter(None, map(_find_scheduling_failure, pods)), "")
        return ReadinessStep(
            "container", f"{len(pods)} Pods", BAD if why else WAITING, why or "no container has started"
        )
    ready = sum(status.get("ready") is True for status in statuses)
    about = f"{ready} of {len(statuses)} containers ready"
    if ready == len(statuses):
        return ReadinessStep("container", about, OK)
    troubles = [_read_container_state(status) for status in statuses if not status.get("ready")]
    failure = next((why for state, why in troubles if state == BAD), "")
    return ReadinessStep(
        "container", about, BAD if failure else BUSY, failure or next((why for _, why in troubles if why), "")
    )


def _route_step(service: Manifest, url: str) -> ReadinessStep:
    conditions = {str(condition.get("type")): condition for condition in _list_conditions(service)}
    route_conditions = [conditions[name] for name in ROUTE_CONDITIONS if name in conditions]
    failed_condition = next((condition for condition in route_conditions if condition.get("status") == "False"), None)
    if failed_condition is not None:
        return ReadinessStep(
            "route", url or "no URL", BAD, str(failed_condition.get("message") or failed_condition.get("reason") or "")
        )
    is_routed = bool(route_conditions) and all(condition.get("status") == "True" for condition in route_conditions)
    why = next((str(condition.get("message") or condition.get("reason") or "") for condition in route_conditions), "")
    return ReadinessStep("route", url or "no URL yet", OK if is_routed and url else BUSY, "" if is_routed else why)


def _list_conditions(service: Manifest) -> Iterable[dict[str, Any]]:
    return [dict(as_mapping(condition)) for condition in as_mapping(service.get("status")).get("conditions") or ()]


def _read_model_status(service: Manifest) -> dict[str, Any]:
    return dict(as_mapping(as_mapping(service.get("status")).get("modelStatus")))


def _read_last_failure(service: Manifest) -> str:
    """KServe's last failure, or "" if the model is loaded: the status keeps the last failure after a recovery."""
    if str(as_mapping(_read_model_status(service).get("states")).get("targetModelState") or "") == "Loaded":
        return ""
    failure_info = as_mapping(_read_model_status(service).get("lastFailureInfo"))
    reason, message = str(failure_info.get("reason") or ""), str(failure_info.get("message") or "")
    return ": ".join(filter(None, (reason, message)))


def _list_container_statuses(pod: Manifest, field: str, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    statuses = [dict(as_mapping(status)) for status in as_mapping(pod.get("status")).get(field) or ()]
    return [status for status in statuses if not names or status.get("name") in names]


def _read_container_state(status: dict[str, Any]) -> tuple[str, str]:
    """State of one container, and the reason."""
    state = as_mapping(status.get("state"))
    if "terminated" in state:
        ended = as_mapping(state["terminated"])
        code = ended.get("exitCode") or 0
        return (BAD, f"{_format_reason(ended)} (exit code {code})") if code else (OK, "")
    if "waiting" in state:
        waiting = as_mapping(state["waiting"])
        reason = str(waiting.get("reason") or "")
        is_bad = reason.endswith(("BackOff", "Error", "ErrImagePull")) or reason.startswith("Err")
        return (BAD if is_bad else BUSY), _format_reason(waiting)
    return BUSY, "" if status.get("ready") else "running, but not ready"


def _format_reason(state: Any) -> str:
    return ": ".join(filter(None, (str(as_mapping(state).get(field) or "") for field in ("reason", "message"))))


def _find_scheduling_failure(pod: Manifest) -> str:
    for condition in as_mapping(pod.get("status")).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("message") or condition.get("reason") or "the Pod cannot be scheduled")
    return ""
