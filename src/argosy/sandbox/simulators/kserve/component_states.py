"""Computes the conditions of an InferenceService's components and the status of its model.

In: Deployments and Pods. Out: conditions and a model status. Never: reads a clock; writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import told
from argosy.sandbox.simulators.deployment_status import condition
from argosy.sandbox.simulators.kserve.conditions import Condition
from argosy.sandbox.simulators.kserve.constants import CONTAINER
from argosy.sandbox.simulators.kserve.model_probe import Answer, ModelState
from argosy.sandbox.simulators.kserve.runtimes import Chosen
from argosy.sandbox.simulators.kserve.storage import INITIALIZER
from argosy.sandbox.simulators.pod_counts import is_ready

BROKEN = ("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError")
ENDINGS = ("Error", "OOMKilled")


class Failure(NamedTuple):
    reason: str
    message: str
    exit_code: int = 0


class Found(NamedTuple):
    """Everything known about a predictor."""

    chosen: Chosen
    problem: str  # why the model cannot be read from storage; empty: no problem
    deployment: Manifest | None
    pods: Sequence[Manifest]  # newest template first
    answer: Answer | None = None
    refusal: str = ""  # why the API server rejected one of its objects

    @property
    def is_unserved(self) -> bool:
        """True if no runtime supports the model; a custom container needs none."""
        return self.chosen.runtime is None and bool(self.chosen.reason)


def component_ready(deployment: Manifest | None, type_: str) -> Condition:
    """kserve: follows the Deployment's conditions; Unknown while it rolls out."""
    if deployment is None or not is_current(deployment):
        return Condition(type_, "Unknown", "DeploymentPending", told("Waiting for the Deployment"))
    failed, progress = condition(deployment, "ReplicaFailure"), condition(deployment, "Progressing")
    if failed.get("status") == "True":
        return Condition(type_, "False", str(failed.get("reason")), str(failed.get("message")))
    if progress.get("status") == "False":
        return Condition(type_, "False", str(progress.get("reason")), _told(progress))
    available = condition(deployment, "Available")
    if progress.get("reason") == "NewReplicaSetAvailable" and available.get("status") == "True":
        return Condition(type_)
    why = progress if progress.get("reason") != "NewReplicaSetAvailable" else available
    return Condition(type_, "Unknown", str(why.get("reason") or "Progressing"), _told(why))


def is_current(deployment: Manifest) -> bool:
    status = deployment.get("status") or {}
    return bool(status.get("observedGeneration") == deployment["metadata"].get("generation"))


def predictor_ready(found: Found) -> Condition:
    type_ = "PredictorReady"
    failure = failure_of(found)
    if found.is_unserved:
        return Condition(type_, "Unknown")
    if failure is not None:
        return Condition(type_, "False", failure.reason, failure.message)
    if found.refusal:
        return Condition(type_, "False", "ReconcileFailed", told(found.refusal))
    said = component_ready(found.deployment, type_)
    if said.status == "Unknown" and (broken := _broken(found.pods)):
        return Condition(type_, "False", *broken)
    if said.status == "True" and found.answer is not None and found.answer.state is not ModelState.LOADED:
        return Condition(type_, "Unknown", "ModelNotLoaded", found.answer.message or told("Waiting for the model"))
    return said


def failure_of(found: Found) -> Failure | None:
    """Return why the model cannot be loaded, or None."""
    if found.is_unserved:
        return Failure(found.chosen.reason, told(found.chosen.message))
    if found.problem:
        return Failure("ModelLoadFailed", told(found.problem), 1)
    if found.answer is not None and found.answer.state is ModelState.FAILED:
        return Failure("ModelLoadFailed", found.answer.message or told("The model does not respond"))
    for pod in found.pods[:1]:
        status = pod.get("status") or {}
        containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
        for each in containers:
            if each["name"] in (INITIALIZER, CONTAINER) and (ended := _ended(each)):
                return Failure("ModelLoadFailed", str(ended.get("message") or ""), int(ended.get("exitCode") or 0))
    return None


def _ended(container: dict[str, Any]) -> dict[str, Any] | None:
    """Return the terminated state of a container that failed and has not restarted."""
    state, last = container.get("state") or {}, (container.get("lastState") or {}).get("terminated")
    if (state.get("terminated") or {}).get("reason") in ENDINGS:
        return dict(state["terminated"])
    if (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff" and last:
        return dict(last)
    return None


def _broken(pods: Sequence[Manifest]) -> tuple[str, str] | None:
    """Return reason and message of a container that cannot start."""
    for pod in pods[:1]:
        status = pod.get("status") or {}
        for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
            waiting = (each.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in BROKEN:
                return str(waiting["reason"]), str(waiting.get("message") or "")
    return None


def model_status(found: Found, *, is_ready_now: bool, before: Manifest, now: str) -> dict[str, Any]:
    """kserve: which model version is active, which one should be, and what prevents it."""
    states = (before.get("states") or {}) if before else {}
    active, failure = str(states.get("activeModelState") or ""), failure_of(found)
    copies = {"failedCopies": 0, "totalCopies": sum(map(is_ready, found.pods))}
    target = ModelState.LOADED if is_ready_now else _target(found)
    transition = "UpToDate" if target is ModelState.LOADED else "InProgress"
    status: dict[str, Any] = {"lastFailureInfo": None}
    if failure is not None:
        target, copies["failedCopies"] = ModelState.FAILED, 1
        transition = "InvalidSpec" if found.is_unserved else "BlockedByFailedLoad"
        status["lastFailureInfo"] = _failure_info(found, failure, before.get("lastFailureInfo") or {}, now)
    if target is ModelState.LOADED:
        active = target.value
    known = {"activeModelState": active if copies["totalCopies"] or target is ModelState.LOADED else ""}
    return {
        **status,
        "transitionStatus": transition,
        "states": {**known, "targetModelState": target.value},
        "copies": copies,
    }


def _target(found: Found) -> ModelState:
    if found.answer is not None and found.answer.state is not ModelState.LOADED:
        return found.answer.state
    for pod in found.pods[:1]:
        for each in (pod.get("status") or {}).get("initContainerStatuses") or ():
            if each["name"] == INITIALIZER and "running" in (each.get("state") or {}):
                return ModelState.LOADING
    return ModelState.PENDING


def _failure_info(found: Found, failure: Failure, before: Manifest, now: str) -> dict[str, Any]:
    said: dict[str, Any] = {"reason": failure.reason, "message": failure.message}
    if found.pods:
        said["location"] = found.pods[0]["metadata"]["name"]
    if failure.exit_code:
        said["exitCode"] = failure.exit_code
    same = all(before.get(name) == said[name] for name in ("reason", "message"))
    return {**said, "time": before.get("time") if same and before.get("time") else now}


def _told(said: Manifest) -> str:
    """Return the condition's message with the "simulated" note."""
    message = str(said.get("message") or "")
    return message if not message or "simulated" in message else told(message)
