"""Tests the short reason why an object is not healthy."""

from __future__ import annotations

from typing import Any

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.application_client.object_health_sentence import list_health_reasons, summarize_health_reason
from argosy.gitops.application_client.stuck_pods import list_waiting_reasons
from argosy.gitops.live.inference_service import read_served_model
from argosy.kube.resource_key import ResourceKey

NO_ROOM = "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu."
PLACED = "0: transitionStatus | InvalidSpec | 1: IngressReady | Unknown | Predictor ingress not created"


def service(runtime: str = "gone", why: str = "RuntimeNotRecognized") -> dict[str, Any]:
    failure = {"reason": why, "message": "Waiting for runtime to become available"}
    return {
        "kind": "InferenceService",
        "metadata": {"name": "chat", "namespace": "ml"},
        "spec": {"predictor": {"model": {"runtime": runtime}}},
        "status": {"modelStatus": {"transitionStatus": "InvalidSpec", "lastFailureInfo": failure}},
    }


def pod(why: str = "Unschedulable") -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": why, "message": NO_ROOM}
    return {"kind": "Pod", "metadata": {"name": "chat-0"}, "status": {"phase": "Pending", "conditions": [condition]}}


def test_missing_serving_runtime_is_named() -> None:
    expected = "RuntimeNotRecognized: ServingRuntime gone not found in namespace ml, and no ClusterServingRuntime"
    assert summarize_health_reason(service(), PLACED).startswith(expected)
    assert read_served_model(service()).why == summarize_health_reason(service(), "")


def test_other_invalid_spec_uses_status_reason_and_message() -> None:
    assert (
        summarize_health_reason(service(why="RuntimeDisabled"), PLACED)
        == "RuntimeDisabled: Waiting for runtime to become available"
    )


def test_unschedulable_pod_names_the_missing_resources() -> None:
    assert summarize_health_reason(pod(), "") == f"Unschedulable: {NO_ROOM}"
    assert [str(reason) for reason in list_waiting_reasons(pod())] == [f"Unschedulable: {NO_ROOM}"]


def test_scheduling_gated_pod_has_no_reason() -> None:
    assert (
        summarize_health_reason(pod("SchedulingGated"), "") == "" and list_waiting_reasons(pod("SchedulingGated")) == []
    )


def test_equal_reasons_are_listed_once_and_healthy_objects_skipped() -> None:
    keys = [ResourceKey("apps", "Deployment", "ml", name) for name in ("a", "b", "c")]
    ill, well = Assessment(HealthStatus.DEGRADED, "no image"), Assessment(HealthStatus.HEALTHY, "fine")
    reasons = list_health_reasons([(keys[0], ill, {}), (keys[1], ill, {}), (keys[2], well, {})])
    assert reasons == ["Deployment/a: no image"]
