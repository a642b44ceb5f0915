"""Tests the fallback health of custom resources without a rule: which convention decides, and the message prefix."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.fallback import assess_custom_resource, is_custom_resource_group
from support.examples import examples

H, S, P, D = HealthStatus.HEALTHY, HealthStatus.SUSPENDED, HealthStatus.PROGRESSING, HealthStatus.DEGRADED


def assess_status(
    status: Any, generation: Any = 2, api_version: str = "example.com/v1"
) -> tuple[HealthStatus | None, str]:
    manifest = {"apiVersion": api_version, "kind": "Widget", "metadata": {"generation": generation}, "status": status}
    assessment = assess_custom_resource(manifest)
    assert assessment is not None
    assert assessment.fault == ""
    assert assessment.rule == "fallback example.com/Widget"
    assert assessment.message.startswith("fallback: ")
    return assessment.health, assessment.message.removeprefix("fallback: ")


def conditions(**status_by_type: str) -> dict[str, Any]:
    """Build conditions: `Ready="False Pending"` is a condition with status and reason."""
    rows = []
    for kind, text in status_by_type.items():
        status, _, reason = text.partition(" ")
        rows.append({"type": kind, "status": status, "reason": reason})
    return {"conditions": rows}


@pytest.mark.parametrize("status", [None, {}, "odd", [], 3])
def test_object_without_status_is_healthy(status: Any) -> None:
    assert assess_status(status) == (H, "no status")


def test_unobserved_generation_is_progressing_regardless_of_other_fields() -> None:
    status = {"observedGeneration": 1, **conditions(Ready="True", Stalled="True"), "phase": "Failed"}
    assert assess_status(status) == (P, "waiting for the controller to observe generation 2")


@pytest.mark.parametrize("observed_generation", [2, 3, None, "1", True, []])
def test_observed_or_non_numeric_generation_does_not_wait(observed_generation: Any) -> None:
    assert assess_status({"observedGeneration": observed_generation, **conditions(Ready="True")}) == (H, "Ready=True")


@pytest.mark.parametrize(
    ("status", "health", "message"),
    [
        (conditions(Stalled="True", Reconciling="True"), D, "Stalled=True"),
        (conditions(Reconciling="True", Failed="True", Ready="True"), P, "Reconciling=True"),
        (conditions(Failed="True", Ready="True"), D, "Failed=True"),
        (conditions(Suspended="True", Ready="False"), S, "Suspended=True"),
        (conditions(Stalled="False", Reconciling="False", Failed="False", Ready="True"), H, "Ready=True"),
        (conditions(Ready="False PodCompleted", Succeeded="True"), H, "Succeeded=True"),
        (conditions(Complete="True"), H, "Complete=True"),
        (conditions(Completed="True"), H, "Completed=True"),
        (conditions(Ready="True", Available="False"), H, "Ready=True"),
        (conditions(Available="True", Ready="False"), P, "Ready=False"),
        (conditions(Available="True"), H, "Available=True"),
        (conditions(Available="False MinimumReplicasUnavailable"), P, "Available=False (MinimumReplicasUnavailable)"),
        (conditions(Ready="Unknown"), P, "Ready=Unknown"),
        (conditions(Ready=""), P, "Ready=Unknown"),
        (conditions(Succeeded="Unknown Running"), P, "Succeeded=Unknown (Running)"),
        (conditions(Succeeded="False Running"), P, "Succeeded=False (Running)"),
        (conditions(Complete="False"), P, "Complete=False"),
    ],
)
def test_known_conditions_are_evaluated_in_order(status: dict[str, Any], health: HealthStatus, message: str) -> None:
    assert assess_status(status) == (health, message)


@pytest.mark.parametrize("generation", [None, "2", True, 1.5, []])
def test_non_numeric_generation_counts_as_observed(generation: Any) -> None:
    assert assess_status({"observedGeneration": 0, "phase": "Running"}, generation) == (H, "phase is Running")


FAILURES = [
    "InstallFailed",
    "ReconcileError",
    "ErrImagePull",
    "InvalidSpec",
    "TaskRunTimeout",
    "TimedOut",
    "DeadlineExceeded",
    "CrashLoopBackOff",
    "backoff",
    "AccessDenied",
]


@pytest.mark.parametrize("reason", FAILURES)
def test_not_ready_with_failure_reason_is_degraded(reason: str) -> None:
    assert assess_status(conditions(Ready=f"False {reason}")) == (D, f"Ready=False ({reason})")


@pytest.mark.parametrize("reason", ["", "Pending", "SecretNotFound", "Progressing", "Interrupted"])
def test_not_ready_with_other_reason_is_progressing(reason: str) -> None:
    assert assess_status(conditions(Ready=f"False {reason}"))[0] is P


def test_ready_unknown_is_never_a_failure() -> None:
    assert assess_status(conditions(Ready="Unknown ProbeFailed"))[0] is P


@pytest.mark.parametrize(
    ("phase", "health", "message"),
    [
        ("Failed", D, "phase is Failed: disk full"),
        ("Paused", S, "phase is Paused: disk full"),
        ("Running", P, "Ready=False (Pending)"),
        ("Odd", P, "Ready=False (Pending)"),
    ],
)
def test_failed_or_paused_phase_overrides_not_ready(phase: str, health: HealthStatus, message: str) -> None:
    status = {**conditions(Ready="False Pending"), "phase": phase, "message": "disk full"}
    assert assess_status(status) == (health, message)


@pytest.mark.parametrize("kind", ["Ready", "Succeeded"])
def test_condition_of_an_older_generation_is_progressing(kind: str) -> None:
    status = {"conditions": [{"type": kind, "status": "True", "observedGeneration": 1}]}
    assert assess_status(status) == (P, f"waiting for generation 2; before that, {kind}=True")


def test_condition_message_contains_reason_and_message() -> None:
    row = {"type": "Ready", "status": "False", "reason": "Pending", "message": "waiting for a volume"}
    assert assess_status({"conditions": [row]}) == (P, "Ready=False (Pending): waiting for a volume")


def test_first_condition_of_a_type_is_used() -> None:
    rows = [{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}]
    assert assess_status({"conditions": rows})[0] is H


@pytest.mark.parametrize("field", ["phase", "state"])
@pytest.mark.parametrize(
    ("word", "health"),
    [
        ("Ready", H),
        ("running", H),
        ("ACTIVE", H),
        ("Bound", H),
        ("Succeeded", H),
        ("Completed", H),
        ("Failed", D),
        ("error", D),
        ("timed-out", D),
        ("Pending", P),
        ("Creating", P),
        ("In Progress", P),
        ("in_progress", P),
        ("Suspended", S),
        ("paused", S),
    ],
)
def test_phase_or_state_decides_without_a_known_condition(field: str, word: str, health: HealthStatus) -> None:
    assert assess_status({field: word, **conditions(Odd="True")}) == (health, f"{field} is {word}")


def test_phase_takes_precedence_over_state() -> None:
    assert assess_status({"phase": "Running", "state": "Failed"}) == (H, "phase is Running")


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"phase": "Frobnicating"}, "phase is Frobnicating, which is not a known phase"),
        ({"replicas": 3}, "no known field in the status"),
        ({"phase": 3, "conditions": "odd"}, "no known field in the status"),
        (conditions(Odd="True"), "no known field in the status"),
    ],
)
def test_status_without_known_fields_is_healthy_with_a_message(status: dict[str, Any], message: str) -> None:
    assert assess_status(status) == (H, message)


@pytest.mark.parametrize(
    ("group", "custom"),
    [
        ("", False),
        ("apps", False),
        ("policy", False),
        ("networking.k8s.io", False),
        ("rbac.authorization.k8s.io", False),
        ("metrics.k8s.io", False),
        ("gateway.networking.k8s.io", True),
        ("snapshot.storage.k8s.io", True),
        ("kueue.x-k8s.io", True),
        ("example.com", True),
    ],
)
def test_fallback_applies_only_to_custom_resources(group: str, custom: bool) -> None:
    manifest = {"apiVersion": f"{group}/v1" if group else "v1", "kind": "Widget"}
    assert is_custom_resource_group(group) is custom
    assert (assess_custom_resource(manifest) is not None) is custom


def test_fallback_does_not_assess_applications() -> None:
    status = {"health": {"status": "Degraded"}, "phase": "Failed"}
    assert (
        assess_custom_resource({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "status": status}) is None
    )


WORDS = st.sampled_from(
    ["conditions", "type", "status", "reason", "phase", "state", "observedGeneration", "Ready", "Failed", "True"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(WORDS, children, max_size=5),
    max_leaves=25,
)


@settings(max_examples=examples())
@given(metadata=JSON, status=JSON)
def test_fallback_never_raises_for_any_content(metadata: Any, status: Any) -> None:
    manifest = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "status": status}
    assert isinstance(assess_custom_resource(manifest), Assessment)
