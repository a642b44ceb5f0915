"""Tests the built-in health of Pods: waiting, running, ended, and the restart policy."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.annotations import HELM_HOOK, HOOK, IGNORE_RESTART_POLICY
from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.health.builtin import assess_builtin

H, P, D, U = HealthStatus.HEALTHY, HealthStatus.PROGRESSING, HealthStatus.DEGRADED, HealthStatus.UNKNOWN
READY = [{"type": "Ready", "status": "True"}]


def assess_pod(
    policy: str, status: dict[str, Any], annotations: dict[str, str] | None = None
) -> tuple[HealthStatus | None, str]:
    metadata = {"name": "web", "annotations": annotations}
    spec = {"restartPolicy": policy}
    assessment = assess_builtin(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
    )
    assert assessment is not None
    assert (assessment.fault, assessment.rule) == ("", "built-in Pod")
    return assessment.health, assessment.message


def waiting(*reasons: str) -> dict[str, Any]:
    states = [{"state": {"waiting": {"reason": reason, "message": f"{reason}!"}}} for reason in reasons]
    return {"phase": "Pending", "message": "not yet", "containerStatuses": [*states, {"state": {"running": {}}}]}


@pytest.mark.parametrize("reason", ["ErrImagePull", "CreateContainerConfigError", "CrashLoopBackOff"])
def test_failing_container_degrades_a_pod_that_always_restarts(reason: str) -> None:
    assert assess_pod("Always", waiting(reason)) == (D, f"{reason}!")


def test_messages_of_all_failing_containers_are_joined() -> None:
    assert assess_pod("Always", waiting("ErrImagePull", "PodInitializing", "CrashLoopBackOff")) == (
        D,
        "ErrImagePull!, CrashLoopBackOff!",
    )


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", ""])
def test_starting_container_does_not_degrade_the_pod(reason: str) -> None:
    assert assess_pod("Always", waiting(reason)) == (P, "not yet")


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_failing_container_does_not_degrade_a_pod_that_ends(policy: str) -> None:
    assert assess_pod(policy, waiting("ImagePullBackOff")) == (P, "not yet")


def ended(state: dict[str, Any], field: str = "containerStatuses") -> dict[str, Any]:
    return {"phase": "Failed", field: [{"name": "fine", "state": {}}, {"name": "main", "state": {"terminated": state}}]}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"phase": "Failed", "message": "evicted"}, "evicted"),
        ({**ended({"message": "boom"}), "message": "evicted"}, "evicted"),
        (ended({"message": "boom", "exitCode": 1}), "boom"),
        (ended({"message": "no init"}, "initContainerStatuses"), "no init"),
        (ended({"reason": "OOMKilled", "exitCode": 137}), "OOMKilled"),
        (ended({"reason": "Error", "exitCode": 3}), 'container "main" failed with exit code 3'),
        (ended({"exitCode": 0}), ""),
        ({"phase": "Failed"}, ""),
    ],
)
def test_failed_pod_shows_the_reason(status: dict[str, Any], message: str) -> None:
    assert assess_pod("Never", status) == (D, message)


RESTARTED = [{"lastState": {"terminated": {"exitCode": 1}}}]


@pytest.mark.parametrize(
    ("policy", "status", "health"),
    [
        ("Always", {"phase": "Running", "conditions": READY, "containerStatuses": RESTARTED}, H),
        ("Always", {"phase": "Running", "containerStatuses": RESTARTED}, D),
        ("Always", {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, P),
        ("Never", {"phase": "Running", "conditions": READY}, P),
        ("OnFailure", {"phase": "Running", "conditions": READY}, P),
        ("", {"phase": "Running", "conditions": READY}, U),
        ("Never", {"phase": "Succeeded"}, H),
        ("Always", {"phase": "Pending"}, P),
        ("Always", {"phase": "Unknown"}, U),
        ("Always", {}, U),
    ],
)
def test_pod_health_follows_its_phase(policy: str, status: dict[str, Any], health: HealthStatus) -> None:
    assert assess_pod(policy, {**status, "message": "told"}) == (health, "told")


IGNORE = {IGNORE_RESTART_POLICY: "true"}


@pytest.mark.parametrize(
    ("annotations", "health"),
    [
        (IGNORE, H),
        ({IGNORE_RESTART_POLICY: "yes"}, P),
        ({**IGNORE, HOOK: "PreSync"}, P),
        ({**IGNORE, HOOK: "Skip"}, H),
        ({**IGNORE, HELM_HOOK: "test"}, P),
        ({**IGNORE, HELM_HOOK: "crd-install"}, H),
    ],
)
def test_restart_policy_can_be_ignored_unless_the_pod_is_a_hook(
    annotations: dict[str, str], health: HealthStatus
) -> None:
    assert assess_pod("Never", {"phase": "Running", "conditions": READY}, annotations) == (health, "")
