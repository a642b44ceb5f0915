"""Tests built-in health checks of other kinds, unsupported versions and fields of wrong types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.annotations import HORIZONTAL_POD_AUTOSCALER_CONDITIONS as CONDITIONS
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.builtin import BUILTIN_CHECKS, assess_builtin
from argosy.kube.resource_key import join_api_version
from support.examples import examples

H, S, P, D, U = (
    HealthStatus.HEALTHY,
    HealthStatus.SUSPENDED,
    HealthStatus.PROGRESSING,
    HealthStatus.DEGRADED,
    HealthStatus.UNKNOWN,
)


def assess_kind(api_version: str, kind: str, **parts: Any) -> Assessment:
    assessment = assess_builtin({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}, **parts})
    assert assessment is not None
    return assessment


def assess_health(api_version: str, kind: str, **parts: Any) -> tuple[HealthStatus | None, str]:
    assessment = assess_kind(api_version, kind, **parts)
    assert assessment.fault == ""
    return assessment.health, assessment.message


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("conditions", "health", "message"),
    [
        ([], P, ""),
        ([condition("FailureTarget", message="soon")], P, ""),
        ([condition("Failed", message="too many")], D, "too many"),
        ([condition("Failed", "False", message="odd")], D, "odd"),
        ([condition("Complete", message="all done")], H, "all done"),
        ([condition("Complete", "False", message="odd")], H, "odd"),
        ([condition("Suspended", message="Job suspended")], S, ""),
        ([condition("Suspended", "False", message="Job resumed")], H, "Job resumed"),
        ([condition("Suspended"), condition("Failed", message="too late")], D, "too late"),
    ],
)
def test_job_health_follows_its_conditions(conditions: list[Any], health: HealthStatus, message: str) -> None:
    assert assess_health("batch/v1", "Job", status={"conditions": conditions}) == (health, message)


@pytest.mark.parametrize(
    ("phase", "health"),
    [(None, P), ("Pending", P), ("Running", P), ("Succeeded", H), ("Failed", D), ("Error", D), ("Odd", U)],
)
def test_workflow_health_follows_its_phase_in_any_version(phase: str | None, health: HealthStatus) -> None:
    status = {"phase": phase, "message": "step 2"}
    assert assess_health("argoproj.io/v7", "Workflow", status=status) == (health, "step 2")


@pytest.mark.parametrize(("phase", "health"), [("Bound", H), ("Pending", P), ("Lost", D), ("", U), (None, U)])
def test_claim_health_follows_its_phase(phase: str | None, health: HealthStatus) -> None:
    assert assess_health("v1", "PersistentVolumeClaim", status={"phase": phase}) == (health, "")


@pytest.mark.parametrize(
    ("kind", "addresses", "health"),
    [
        ("ClusterIP", [], H),
        ("LoadBalancer", None, P),
        ("LoadBalancer", [], P),
        ("LoadBalancer", [{"ip": "10.0.0.1"}], H),
        ("LoadBalancer", [{}], H),
    ],
)
def test_only_load_balancer_service_waits_for_an_address(kind: str, addresses: Any, health: HealthStatus) -> None:
    status = {"loadBalancer": {"ingress": addresses}}
    assert assess_health("v1", "Service", spec={"type": kind}, status=status) == (health, "")


@pytest.mark.parametrize("api_version", ["networking.k8s.io/v1", "networking.k8s.io/v1beta1", "extensions/v1beta1"])
@pytest.mark.parametrize(
    ("status", "health"),
    [
        ({"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}, H),
        ({"loadBalancer": {"ingress": [{}]}}, H),
        ({"loadBalancer": {"ingress": []}}, P),
        ({"loadBalancer": {}}, P),
        ({"loadBalancer": {"ingress": "10.0.0.1"}}, P),
        ({"loadBalancer": 3}, P),
        ("odd", P),
        (None, P),
    ],
)
def test_ingress_waits_for_an_address_in_every_version(api_version: str, status: Any, health: HealthStatus) -> None:
    assert assess_health(api_version, "Ingress", status=status) == (health, "")


WAITING = (P, "Waiting to Autoscale")
SCALING = [
    ([], *WAITING),
    ([condition("ScalingActive", "False", "ScalingDisabled", "off")], *WAITING),
    ([condition("AbleToScale", "False", "BackoffBoth", "wait")], *WAITING),
    ([condition("AbleToScale", "True", "ReadyForNewScale", "fits")], H, "fits"),
    ([condition("ScalingLimited", "True", "TooFewReplicas", "few")], H, "few"),
    ([condition("AbleToScale", "True"), condition("ScalingActive", "False", "InvalidSelector", "bad")], D, "bad"),
    *(
        ([condition(kind, "False", reason, "no")], D, "no")
        for kind, reason in (
            ("AbleToScale", "FailedGetScale"),
            ("AbleToScale", "FailedUpdateScale"),
            ("ScalingActive", "FailedGetResourceMetric"),
            ("ScalingActive", "FailedGetContainerResourceMetric"),
            ("ScalingActive", "FailedGetPodsMetric"),
            ("ScalingActive", "FailedGetObjectMetric"),
            ("ScalingActive", "FailedGetExternalMetric"),
            ("ScalingActive", "InvalidSelector"),
        )
    ),
    ([condition("ScalingLimited", "False", "FailedGetScale", "elsewhere")], *WAITING),
]


@pytest.mark.parametrize("version", ["v2", "v2beta1", "v2beta2"])
@pytest.mark.parametrize(("conditions", "health", "message"), SCALING)
def test_autoscaler_health_follows_its_conditions(
    version: str, conditions: list[Any], health: HealthStatus, message: str
) -> None:
    status = {"conditions": conditions}
    assert assess_health(f"autoscaling/{version}", "HorizontalPodAutoscaler", status=status) == (health, message)


def annotated(text: Any) -> Assessment:
    return assess_kind("autoscaling/v1", "HorizontalPodAutoscaler", metadata={"annotations": {CONDITIONS: text}})


@pytest.mark.parametrize(("conditions", "health", "message"), SCALING)
def test_autoscaler_v1_health_follows_its_annotation(conditions: list[Any], health: HealthStatus, message: str) -> None:
    assessment = annotated(json.dumps([{key.title(): value for key, value in fields.items()} for fields in conditions]))
    assert (assessment.health, assessment.message, assessment.fault) == (health, message, "")


def test_autoscaler_v1_without_annotation_is_progressing() -> None:
    status = {"conditions": [condition("AbleToScale")]}
    assert assess_health("autoscaling/v1", "HorizontalPodAutoscaler", status=status) == WAITING
    assert annotated("null").message == WAITING[1]


@pytest.mark.parametrize("text", ["", "[", "{}", '"a"', "[1]", '[{"type": 1}]'])
def test_annotation_without_valid_conditions_is_a_fault(text: str) -> None:
    assessment = annotated(text)
    assert assessment.health is U
    assert assessment.fault.startswith("failed to convert conditions annotation to typed: ")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize(
    ("conditions", "health", "message"),
    [
        ([], P, "Waiting to be processed"),
        ([condition("Other")], P, "Waiting to be processed"),
        ([condition("Available", "True", "Passed", "all checks passed")], H, "Passed: all checks passed"),
        ([condition("Available", "False", "MissingEndpoints", "none")], P, "MissingEndpoints: none"),
        ([condition("Available", "Unknown")], P, ": "),
    ],
)
def test_api_service_health_follows_its_available_condition(
    version: str, conditions: list[Any], health: HealthStatus, message: str
) -> None:
    verdict = assess_health(f"apiregistration.k8s.io/{version}", "APIService", status={"conditions": conditions})
    assert verdict == (health, message)


@pytest.mark.parametrize(
    ("api_version", "kind", "fault"),
    [
        ("apps/v1beta2", "Deployment", "unsupported Deployment GVK: apps/v1beta2, Kind=Deployment"),
        ("apps/v1beta1", "StatefulSet", "unsupported StatefulSet GVK: apps/v1beta1, Kind=StatefulSet"),
        ("apps/v2", "ReplicaSet", "unsupported ReplicaSet GVK: apps/v2, Kind=ReplicaSet"),
        ("apps/v2", "DaemonSet", "unsupported DaemonSet GVK: apps/v2, Kind=DaemonSet"),
        ("v2", "Pod", "unsupported Pod GVK: /v2, Kind=Pod"),
        ("v2", "Service", "unsupported Service GVK: /v2, Kind=Service"),
        (
            "v2",
            "PersistentVolumeClaim",
            "unsupported PersistentVolumeClaim GVK: /v2, Kind=PersistentVolumeClaim",
        ),
        ("batch/v2", "Job", "unsupported Job GVK: batch/v2, Kind=Job"),
        (
            "autoscaling/v3",
            "HorizontalPodAutoscaler",
            "unsupported HPA GVK: autoscaling/v3, Kind=HorizontalPodAutoscaler",
        ),
        (
            "apiregistration.k8s.io/v2",
            "APIService",
            "unsupported APIService GVK: apiregistration.k8s.io/v2, Kind=APIService",
        ),
    ],
)
def test_unsupported_version_is_unknown_and_a_fault(api_version: str, kind: str, fault: str) -> None:
    assessment = assess_kind(api_version, kind)
    assert (assessment.health, assessment.message, assessment.fault) == (U, fault, fault)
    assert assessment.rule.startswith("built-in ")


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"apiVersion": 1, "kind": []},
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "extensions/v1beta1", "kind": "Deployment"},
        {"apiVersion": "example.com/v1", "kind": "Pod"},
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"},
    ],
)
def test_other_kinds_have_no_built_in_health(manifest: dict[str, Any]) -> None:
    assert assess_builtin(manifest) is None


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"status": "odd"}, "status is a string, not an object"),
        ({"spec": {"replicas": "3"}, "status": {"observedGeneration": 1}}, "spec.replicas is a string, not an integer"),
        ({"spec": {"replicas": 1.5}}, "spec.replicas is a number, not an integer"),
        ({"spec": {"replicas": True}}, "spec.replicas is a boolean, not an integer"),
        ({"spec": {"paused": "yes"}}, "spec.paused is a string, not a boolean"),
        ({"status": {"conditions": {}}}, "status.conditions is an object, not a list"),
        ({"status": {"conditions": [{}, 3]}}, "status.conditions[1] is a number, not an object"),
        ({"status": {"conditions": [{"type": []}]}}, "status.conditions[0].type is a list, not a string"),
        ({"metadata": []}, "metadata is a list, not an object"),
    ],
)
def test_field_of_wrong_type_is_unknown_and_named(parts: dict[str, Any], problem: str) -> None:
    assessment = assess_kind("apps/v1", "Deployment", **parts)
    assert assessment.health is U
    assert assessment.fault == assessment.message == f"failed to convert unstructured Deployment to typed: {problem}"


FIELDS = """
    status spec metadata conditions type reason message replicas observedGeneration generation annotations phase
    containerStatuses state waiting terminated lastState loadBalancer ingress updateStrategy rollingUpdate partition
    restartPolicy name paused True Running Always Failed LoadBalancer RollingUpdate
"""
WORDS = st.sampled_from(FIELDS.split())
LEAVES = st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | WORDS | st.text(max_size=4)
JSON = st.recursive(
    LEAVES,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(WORDS, children, max_size=5),
    max_leaves=25,
)


@settings(max_examples=examples())
@given(
    of=st.sampled_from(sorted(BUILTIN_CHECKS)),
    version=st.sampled_from(["v1", "v2"]),
    spec=JSON,
    status=JSON,
    metadata=JSON,
)
def test_built_in_checks_never_raise_for_any_content(
    of: tuple[str, str], version: str, spec: Any, status: Any, metadata: Any
) -> None:
    manifest = {
        "apiVersion": join_api_version(of[0], version),
        "kind": of[1],
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }
    assessment = assess_builtin(manifest)
    assert isinstance(assessment, Assessment)
    assert isinstance(assessment.health, HealthStatus)
    assert not assessment.fault or (assessment.health is U and assessment.message == assessment.fault)
