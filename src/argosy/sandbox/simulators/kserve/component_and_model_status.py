"""Computes the conditions of an InferenceService's components and the status of its model.

In: Deployments and Pods. Out: conditions and a model status. Never: reads a clock; writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.deployment_status import find_condition
from argosy.sandbox.simulators.kserve.kinds_and_labels import KSERVE_CONTAINER
from argosy.sandbox.simulators.kserve.knative_conditions import KnativeCondition
from argosy.sandbox.simulators.kserve.model_probe_interface import ModelState, ProbeResult
from argosy.sandbox.simulators.kserve.runtime_selection import RuntimeChoice
from argosy.sandbox.simulators.kserve.storage_uri_and_volumes import INITIALIZER_NAME
from argosy.sandbox.simulators.owner_references_and_marks import append_simulated_note
from argosy.sandbox.simulators.pod_counts import is_ready

START_FAILURE_REASONS = ("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError")
FAILED_EXIT_REASONS = ("Error", "OOMKilled")


class ModelFailure(NamedTuple):
    reason: str
    message: str
    exit_code: int = 0


class PredictorState(NamedTuple):
    """Everything known about a predictor."""

    runtime_choice: RuntimeChoice
    storage_problem: str  # why the model cannot be read from storage; empty: no problem
    deployment: Manifest | None
    pods: Sequence[Manifest]  # newest template first
    probe_result: ProbeResult | None = None
    rejection: str = ""  # why the API server rejected one of its objects

    @property
    def has_no_runtime(self) -> bool:
        """True if no runtime supports the model; a custom container needs none."""
        return self.runtime_choice.runtime is None and bool(self.runtime_choice.reason)


def build_component_condition(deployment: Manifest | None, type_: str) -> KnativeCondition:
    """kserve: follows the Deployment's conditions; Unknown while it rolls out."""
    if deployment is None or not is_status_current(deployment):
        return KnativeCondition(
            type_, "Unknown", "DeploymentPending", append_simulated_note("Waiting for the Deployment")
        )
    replica_failure, progress = find_condition(deployment, "ReplicaFailure"), find_condition(deployment, "Progressing")
    if replica_failure.get("status") == "True":
        return KnativeCondition(type_, "False", str(replica_failure.get("reason")), str(replica_failure.get("message")))
    if progress.get("status") == "False":
        return KnativeCondition(type_, "False", str(progress.get("reason")), _render_condition_message(progress))
    available = find_condition(deployment, "Available")
    if progress.get("reason") == "NewReplicaSetAvailable" and available.get("status") == "True":
        return KnativeCondition(type_)
    cause = progress if progress.get("reason") != "NewReplicaSetAvailable" else available
    return KnativeCondition(
        type_, "Unknown", str(cause.get("reason") or "Progressing"), _render_condition_message(cause)
    )


def is_status_current(deployment: Manifest) -> bool:
    status = deployment.get("status") or {}
    return bool(status.get("observedGeneration") == deployment["metadata"].get("generation"))


def build_predictor_condition(predictor: PredictorState) -> KnativeCondition:
    type_ = "PredictorReady"
    failure = find_model_failure(predictor)
    if predictor.has_no_runtime:
        return KnativeCondition(type_, "Unknown")
    if failure is not None:
        return KnativeCondition(type_, "False", failure.reason, failure.message)
    if predictor.rejection:
        return KnativeCondition(type_, "False", "ReconcileFailed", append_simulated_note(predictor.rejection))
    deployment_condition = build_component_condition(predictor.deployment, type_)
    if deployment_condition.status == "Unknown" and (start_failure := _find_start_failure(predictor.pods)):
        return KnativeCondition(type_, "False", *start_failure)
    if (
        deployment_condition.status == "True"
        and predictor.probe_result is not None
        and predictor.probe_result.state is not ModelState.LOADED
    ):
        return KnativeCondition(
            type_,
            "Unknown",
            "ModelNotLoaded",
            predictor.probe_result.message or append_simulated_note("Waiting for the model"),
        )
    return deployment_condition


def find_model_failure(predictor: PredictorState) -> ModelFailure | None:
    """Return why the model cannot be loaded, or None."""
    if predictor.has_no_runtime:
        return ModelFailure(predictor.runtime_choice.reason, append_simulated_note(predictor.runtime_choice.message))
    if predictor.storage_problem:
        return ModelFailure("ModelLoadFailed", append_simulated_note(predictor.storage_problem), 1)
    if predictor.probe_result is not None and predictor.probe_result.state is ModelState.FAILED:
        return ModelFailure(
            "ModelLoadFailed", predictor.probe_result.message or append_simulated_note("The model does not respond")
        )
    for pod in predictor.pods[:1]:
        status = pod.get("status") or {}
        containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
        for container_status in containers:
            if container_status["name"] in (INITIALIZER_NAME, KSERVE_CONTAINER) and (
                terminated := _find_failed_exit(container_status)
            ):
                return ModelFailure(
                    "ModelLoadFailed", str(terminated.get("message") or ""), int(terminated.get("exitCode") or 0)
                )
    return None


def _find_failed_exit(container_status: dict[str, Any]) -> dict[str, Any] | None:
    """Return the terminated state of a container that failed and has not restarted."""
    state, last_terminated = (
        container_status.get("state") or {},
        (container_status.get("lastState") or {}).get("terminated"),
    )
    if (state.get("terminated") or {}).get("reason") in FAILED_EXIT_REASONS:
        return dict(state["terminated"])
    if (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff" and last_terminated:
        return dict(last_terminated)
    return None


def _find_start_failure(pods: Sequence[Manifest]) -> tuple[str, str] | None:
    """Return reason and message of a container that cannot start."""
    for pod in pods[:1]:
        status = pod.get("status") or {}
        for container_status in (
            *(status.get("initContainerStatuses") or ()),
            *(status.get("containerStatuses") or ()),
        ):
            waiting = (container_status.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in START_FAILURE_REASONS:
                return str(waiting["reason"]), str(waiting.get("message") or "")
    return None


def build_model_status(
    predictor: PredictorState, *, is_ready_now: bool, previous: Manifest, now: str
) -> dict[str, Any]:
    """kserve: which model version is active, which one should be, and what prevents it."""
    previous_states = (previous.get("states") or {}) if previous else {}
    active_state, failure = str(previous_states.get("activeModelState") or ""), find_model_failure(predictor)
    copies = {"failedCopies": 0, "totalCopies": sum(map(is_ready, predictor.pods))}
    target_state = ModelState.LOADED if is_ready_now else _compute_target_state(predictor)
    transition = "UpToDate" if target_state is ModelState.LOADED else "InProgress"
    status: dict[str, Any] = {"lastFailureInfo": None}
    if failure is not None:
        target_state, copies["failedCopies"] = ModelState.FAILED, 1
        transition = "InvalidSpec" if predictor.has_no_runtime else "BlockedByFailedLoad"
        status["lastFailureInfo"] = _build_failure_info(predictor, failure, previous.get("lastFailureInfo") or {}, now)
    if target_state is ModelState.LOADED:
        active_state = target_state.value
    states_to_write = {
        "activeModelState": active_state if copies["totalCopies"] or target_state is ModelState.LOADED else ""
    }
    return {
        **status,
        "transitionStatus": transition,
        "states": {**states_to_write, "targetModelState": target_state.value},
        "copies": copies,
    }


def _compute_target_state(predictor: PredictorState) -> ModelState:
    if predictor.probe_result is not None and predictor.probe_result.state is not ModelState.LOADED:
        return predictor.probe_result.state
    for pod in predictor.pods[:1]:
        for container_status in (pod.get("status") or {}).get("initContainerStatuses") or ():
            if container_status["name"] == INITIALIZER_NAME and "running" in (container_status.get("state") or {}):
                return ModelState.LOADING
    return ModelState.PENDING


def _build_failure_info(
    predictor: PredictorState, failure: ModelFailure, previous: Manifest, now: str
) -> dict[str, Any]:
    info: dict[str, Any] = {"reason": failure.reason, "message": failure.message}
    if predictor.pods:
        info["location"] = predictor.pods[0]["metadata"]["name"]
    if failure.exit_code:
        info["exitCode"] = failure.exit_code
    is_unchanged = all(previous.get(name) == info[name] for name in ("reason", "message"))
    return {**info, "time": previous.get("time") if is_unchanged and previous.get("time") else now}


def _render_condition_message(condition_fields: Manifest) -> str:
    """Return the condition's message with the "simulated" note."""
    message = str(condition_fields.get("message") or "")
    return message if not message or "simulated" in message else append_simulated_note(message)
