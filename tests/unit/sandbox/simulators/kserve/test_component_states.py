"""InferenceService conditions and model status computed from component states (pure functions)."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.kserve.component_and_model_status import (
    PredictorState,
    build_component_condition,
    build_model_status,
    build_predictor_condition,
)
from argosy.sandbox.simulators.kserve.knative_conditions import (
    KnativeCondition,
    compute_ready_condition,
    conditions_to_wire,
)
from argosy.sandbox.simulators.kserve.model_probe_interface import ModelState, ProbeResult
from argosy.sandbox.simulators.kserve.runtime_selection import RuntimeChoice

DONE = "NewReplicaSetAvailable"
NOW = "2026-01-01T00:00:00Z"
RUNTIME: Manifest = {"metadata": {"name": "it", "namespace": "default"}, "spec": {}}


def deployment(*conditions: tuple[str, str, str], generation: int = 1) -> Manifest:
    status_conditions = [
        {"type": kind, "status": status, "reason": reason, "message": "m"} for kind, status, reason in conditions
    ]
    return {
        "metadata": {"generation": generation},
        "status": {"observedGeneration": 1, "conditions": status_conditions},
    }


def pod(state: Manifest, last: Manifest | None = None, name: str = "kserve-container") -> Manifest:
    container = {"name": name, "state": state, "lastState": {"terminated": last} if last else {}}
    return {"metadata": {"name": "pod"}, "status": {"containerStatuses": [container]}}


def build_state(live: Manifest | None, *pods: Manifest, **more: Any) -> PredictorState:
    return PredictorState(RuntimeChoice(RUNTIME), "", live, pods)._replace(**more)


UP = deployment(("Available", "True", "MinimumReplicasAvailable"), ("Progressing", "True", "NewReplicaSetAvailable"))
ROLLING = deployment(("Available", "False", "MinimumReplicasUnavailable"), ("Progressing", "True", "ReplicaSetUpdated"))


@pytest.mark.parametrize(
    ("live", "status", "reason"),
    [
        (None, "Unknown", "DeploymentPending"),
        ({**UP, "metadata": {"generation": 2}}, "Unknown", "DeploymentPending"),
        (UP, "True", ""),
        (ROLLING, "Unknown", "ReplicaSetUpdated"),
        (deployment(("Progressing", "False", "ProgressDeadlineExceeded")), "False", "ProgressDeadlineExceeded"),
        (deployment(("ReplicaFailure", "True", "FailedCreate")), "False", "FailedCreate"),
        (
            deployment(("Available", "False", "MinimumReplicasUnavailable"), ("Progressing", "True", DONE)),
            "Unknown",
            "MinimumReplicasUnavailable",
        ),
    ],
    ids=["none", "of an older spec", "up", "rolling", "too late", "no Pods", "a Pod was lost"],
)
def test_component_condition_follows_its_deployment(live: Manifest | None, status: str, reason: str) -> None:
    condition = build_component_condition(live, "PredictorReady")
    assert (condition.status, condition.reason) == (status, reason)


def test_crashing_container_is_reported_as_model_load_failure() -> None:
    ended = {"reason": "Error", "exitCode": 3, "message": "no such file"}
    crashed = build_state(ROLLING, pod({"waiting": {"reason": "CrashLoopBackOff"}}, ended))
    assert build_predictor_condition(crashed) == KnativeCondition(
        "PredictorReady", "False", "ModelLoadFailed", "no such file"
    )
    status = build_model_status(crashed, is_ready_now=False, previous={}, now=NOW)
    assert status["lastFailureInfo"] == {
        "reason": "ModelLoadFailed", "message": "no such file", "location": "pod", "exitCode": 3, "time": NOW,
    }  # fmt: skip
    assert status["transitionStatus"] == "BlockedByFailedLoad"


def test_failure_time_is_when_the_failure_was_first_seen() -> None:
    failed = build_state(ROLLING, storage_problem="gone")
    first = build_model_status(failed, is_ready_now=False, previous={}, now=NOW)
    again = build_model_status(failed, is_ready_now=False, previous=first, now="2026-01-01T00:01:00Z")
    assert again["lastFailureInfo"]["time"] == NOW


def test_crash_of_a_sidecar_is_not_a_model_failure() -> None:
    aside = pod({"waiting": {"reason": "CrashLoopBackOff"}}, {"reason": "Error", "exitCode": 1}, name="proxy")
    assert (
        build_model_status(build_state(ROLLING, aside), is_ready_now=False, previous={}, now=NOW)["lastFailureInfo"]
        is None
    )


@pytest.mark.parametrize("state", [ModelState.LOADING, ModelState.PENDING])
def test_loading_model_is_not_ready_although_its_pods_are(state: ModelState) -> None:
    condition = build_predictor_condition(build_state(UP, probe_result=ProbeResult(state)))
    assert condition.status == "Unknown"


def test_ready_is_the_first_false_condition_else_the_first_unknown() -> None:
    good, unsure, bad = (
        KnativeCondition("IngressReady"),
        KnativeCondition("PredictorReady", "Unknown", "a"),
        KnativeCondition("X", "False"),
    )
    assert compute_ready_condition([good]) == KnativeCondition("Ready")
    assert compute_ready_condition([good, unsure, bad]) == KnativeCondition("Ready", "Unknown", "a")
    assert compute_ready_condition([KnativeCondition("IngressReady", "False", "b"), unsure]) == KnativeCondition(
        "Ready", "False", "b"
    )


def test_condition_keeps_its_transition_time_until_its_status_changes() -> None:
    live: Manifest = {"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "before"}]}}
    assert (
        conditions_to_wire([KnativeCondition("Ready", "True", "other")], live, NOW)[0]["lastTransitionTime"] == "before"
    )
    assert conditions_to_wire([KnativeCondition("Ready", "False")], live, NOW)[0]["lastTransitionTime"] == NOW
