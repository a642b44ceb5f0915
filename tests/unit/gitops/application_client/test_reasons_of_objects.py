"""Why an object is not healthy: the sentence that helps, not all that a check says."""

from __future__ import annotations

from typing import Any

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.application_client.health_reasons import list_health_reasons, summarize_health_reason
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


def test_a_runtime_that_is_not_there_is_named() -> None:
    expected = "RuntimeNotRecognized: ServingRuntime gone not found in namespace ml, and no ClusterServingRuntime"
    assert summarize_health_reason(service(), PLACED).startswith(expected)
    assert read_served_model(service()).why == summarize_health_reason(service(), "")


def test_any_other_invalid_spec_is_told_in_the_words_of_its_status() -> None:
    assert (
        summarize_health_reason(service(why="RuntimeDisabled"), PLACED)
        == "RuntimeDisabled: Waiting for runtime to become available"
    )


def test_a_pod_that_no_node_takes_says_what_is_short() -> None:
    assert summarize_health_reason(pod(), "") == f"Unschedulable: {NO_ROOM}"
    assert [str(reason) for reason in list_waiting_reasons(pod())] == [f"Unschedulable: {NO_ROOM}"]


def test_a_pod_that_is_gated_waits_for_somebody_else() -> None:
    assert (
        summarize_health_reason(pod("SchedulingGated"), "") == "" and list_waiting_reasons(pod("SchedulingGated")) == []
    )


def test_what_two_objects_say_alike_is_told_once_and_healthy_ones_are_not_asked() -> None:
    keys = [ResourceKey("apps", "Deployment", "ml", name) for name in ("a", "b", "c")]
    ill, well = Assessment(HealthStatus.DEGRADED, "no image"), Assessment(HealthStatus.HEALTHY, "fine")
    reasons = list_health_reasons([(keys[0], ill, {}), (keys[1], ill, {}), (keys[2], well, {})])
    assert reasons == ["Deployment/a: no image"]
