"""Readiness of a served model as a chain of steps: runtime, storage, load, container, route.

In: an InferenceService and its Pods. Out: steps with states and reasons. Never: I/O; guesses what no status says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.gitops.live.inference_service import invalid, read_model
from argosy.gitops.status.wire_format import mapping
from argosy.kube.objects import Manifest

OK, BAD, BUSY, WAITS = "ok", "bad", "busy", "waits"
SERVER: Final = "kserve-container"
OF_STORAGE: Final = (
    "persistentvolumeclaim",
    "storage",
    "download",
    "bucket",
)  # words in failure messages that mean storage
FETCHERS: Final = ("storage-initializer", "modelcar-init")
ROUTES: Final = ("IngressReady", "RoutesReady", "PredictorRouteReady")


@dataclass(frozen=True)
class Link:
    name: str
    about: str
    state: str  # ok, bad, busy, waits
    why: str = ""

    @property
    def is_open(self) -> bool:
        return self.state in (BAD, BUSY)


def chain(service: Manifest, pods: Sequence[Manifest]) -> tuple[Link, ...]:
    """Steps of the readiness chain; every step after a failed one waits."""
    model = read_model(service)
    found = [
        _runtime(service, model.runtime),
        _storage(service, model.source, pods),
        _load(service),
        _container(pods),
        _route(service, model.url),
    ]
    failed = next((place for place, each in enumerate(found) if each.state == BAD), len(found))
    return tuple(
        replace(each, state=WAITS, why=each.why if each.state != BAD else "") if place > failed else each
        for place, each in enumerate(found)
    )


def _runtime(service: Manifest, name: str) -> Link:
    why = invalid(service)
    return Link("runtime", name or "not selected yet", BAD if why else OK if name else BUSY, why)


def _storage(service: Manifest, source: str, pods: Sequence[Manifest]) -> Link:
    about = source or "inside the container's image"
    states = [_state(each) for pod in pods for each in _statuses(pod, "initContainerStatuses", FETCHERS)]
    if any(state == BAD for state, _ in states):
        return Link("storage", about, BAD, next(why for state, why in states if state == BAD))
    if any(state == BUSY for state, _ in states):
        return Link("storage", about, BUSY, next(why for state, why in states if state == BUSY))
    failure = _failure(service)
    if not invalid(service) and any(word in failure.lower() for word in OF_STORAGE):
        return Link("storage", about, BAD, failure)
    return Link("storage", about, OK if pods else WAITS, "" if pods else "no Pod has started to download it")


def _load(service: Manifest) -> Link:
    states = mapping(_model_status(service).get("states"))
    target = str(states.get("targetModelState") or states.get("activeModelState") or "")
    told = _failure(service)
    if target == "FailedToLoad":
        return Link("load", target, BAD, told or "the model server could not load it; see its logs")
    if target == "Loaded":
        return Link("load", target, OK)
    return Link("load", target or "not started", BUSY if target in ("Pending", "Loading", "Standby") else WAITS, told)


def _container(pods: Sequence[Manifest]) -> Link:
    statuses = [each for pod in pods for each in _statuses(pod, "containerStatuses")]
    if not statuses:
        why = next(filter(None, map(_unscheduled, pods)), "")
        return Link("container", f"{len(pods)} Pods", BAD if why else WAITS, why or "no container has started")
    ready = sum(each.get("ready") is True for each in statuses)
    about = f"{ready} of {len(statuses)} containers ready"
    if ready == len(statuses):
        return Link("container", about, OK)
    troubles = [_state(each) for each in statuses if not each.get("ready")]
    bad = next((why for state, why in troubles if state == BAD), "")
    return Link("container", about, BAD if bad else BUSY, bad or next((why for _, why in troubles if why), ""))


def _route(service: Manifest, url: str) -> Link:
    conditions = {str(each.get("type")): each for each in _conditions(service)}
    found = [conditions[name] for name in ROUTES if name in conditions]
    wrong = next((each for each in found if each.get("status") == "False"), None)
    if wrong is not None:
        return Link("route", url or "no URL", BAD, str(wrong.get("message") or wrong.get("reason") or ""))
    is_through = bool(found) and all(each.get("status") == "True" for each in found)
    why = next((str(each.get("message") or each.get("reason") or "") for each in found), "")
    return Link("route", url or "no URL yet", OK if is_through and url else BUSY, "" if is_through else why)


def _conditions(service: Manifest) -> Iterable[dict[str, Any]]:
    return [dict(mapping(each)) for each in mapping(service.get("status")).get("conditions") or ()]


def _model_status(service: Manifest) -> dict[str, Any]:
    return dict(mapping(mapping(service.get("status")).get("modelStatus")))


def _failure(service: Manifest) -> str:
    """KServe's last failure, or "" if the model is loaded: the status keeps the last failure after a recovery."""
    if str(mapping(_model_status(service).get("states")).get("targetModelState") or "") == "Loaded":
        return ""
    found = mapping(_model_status(service).get("lastFailureInfo"))
    reason, message = str(found.get("reason") or ""), str(found.get("message") or "")
    return ": ".join(filter(None, (reason, message)))


def _statuses(pod: Manifest, field: str, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    found = [dict(mapping(each)) for each in mapping(pod.get("status")).get(field) or ()]
    return [each for each in found if not names or each.get("name") in names]


def _state(status: dict[str, Any]) -> tuple[str, str]:
    """State of one container, and the reason."""
    now = mapping(status.get("state"))
    if "terminated" in now:
        ended = mapping(now["terminated"])
        code = ended.get("exitCode") or 0
        return (BAD, f"{_told(ended)} (exit code {code})") if code else (OK, "")
    if "waiting" in now:
        waiting = mapping(now["waiting"])
        reason = str(waiting.get("reason") or "")
        is_bad = reason.endswith(("BackOff", "Error", "ErrImagePull")) or reason.startswith("Err")
        return (BAD if is_bad else BUSY), _told(waiting)
    return BUSY, "" if status.get("ready") else "running, but not ready"


def _told(state: Any) -> str:
    return ": ".join(filter(None, (str(mapping(state).get(field) or "") for field in ("reason", "message"))))


def _unscheduled(pod: Manifest) -> str:
    for each in mapping(pod.get("status")).get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return str(each.get("message") or each.get("reason") or "the Pod cannot be scheduled")
    return ""
