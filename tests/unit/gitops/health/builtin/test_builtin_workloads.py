"""Tests the built-in health of Deployments, StatefulSets, ReplicaSets and DaemonSets, with every message."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.builtin import assess_builtin

H, S, P, D = HealthStatus.HEALTHY, HealthStatus.SUSPENDED, HealthStatus.PROGRESSING, HealthStatus.DEGRADED
ROLLOUT = "Waiting for rollout to finish: "


def assess_workload(
    kind: str, spec: dict[str, Any], status: dict[str, Any], generation: int = 2
) -> tuple[HealthStatus | None, str]:
    metadata = {"name": "web", "namespace": "shop", "generation": generation}
    assessment = assess_builtin(
        {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec, "status": status}
    )
    assert isinstance(assessment, Assessment)
    assert (assessment.fault, assessment.rule) == ("", f"built-in apps/{kind}")
    return assessment.health, assessment.message


def counts(replicas: int, updated: int, available: int) -> dict[str, Any]:
    return {
        "observedGeneration": 2,
        "replicas": replicas,
        "updatedReplicas": updated,
        "availableReplicas": available,
    }


DEADLINE = [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]


@pytest.mark.parametrize(
    ("spec", "status", "health", "message"),
    [
        ({"paused": True}, {}, S, "Deployment is paused"),
        ({"replicas": 3}, {}, P, ROLLOUT + "observed deployment generation less than desired generation"),
        (
            {"replicas": 3},
            {"observedGeneration": 1, "conditions": DEADLINE},
            P,
            ROLLOUT + "observed deployment generation less than desired generation",
        ),
        (
            {"replicas": 3},
            {**counts(3, 1, 3), "conditions": DEADLINE},
            D,
            'Deployment "web" exceeded its progress deadline',
        ),
        ({"replicas": 3}, counts(3, 1, 3), P, ROLLOUT + "1 out of 3 new replicas have been updated..."),
        ({"replicas": 3}, counts(4, 3, 3), P, ROLLOUT + "1 old replicas are pending termination..."),
        ({"replicas": 3}, counts(3, 3, 1), P, ROLLOUT + "1 of 3 updated replicas are available..."),
        ({"replicas": 3}, counts(3, 3, 3), H, ""),
        ({"replicas": 0}, {"observedGeneration": 2}, H, ""),
        ({}, {"observedGeneration": 2}, H, ""),
        ({"replicas": 3}, {**counts(3, 3, 3), "conditions": None}, H, ""),
        ({"replicas": 3}, {**counts(3, 3, 3), "conditions": [None, {"type": "Progressing"}]}, H, ""),
        ({"replicas": 3.0, "paused": None}, counts(3, 3, 3), H, ""),
    ],
)
def test_deployment_health_follows_its_rollout(
    spec: dict[str, Any], status: dict[str, Any], health: HealthStatus, message: str
) -> None:
    assert assess_workload("Deployment", spec, status) == (health, message)


def test_deployment_without_generation_is_healthy() -> None:
    assert assess_builtin({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}).health is H


FAILURE = {"type": "ReplicaFailure", "message": "exceeded quota"}


@pytest.mark.parametrize(
    ("status", "health", "message"),
    [
        (
            {"observedGeneration": 1},
            P,
            ROLLOUT + "observed replica set generation less than desired generation",
        ),
        ({"observedGeneration": 2, "conditions": [{**FAILURE, "status": "True"}]}, D, "exceeded quota"),
        (
            {"observedGeneration": 2, "conditions": [{**FAILURE, "status": "False"}]},
            P,
            ROLLOUT + "0 out of 2 new replicas are available...",
        ),
        ({"observedGeneration": 2, "availableReplicas": 2}, H, ""),
    ],
)
def test_replica_set_health_follows_failure_and_availability(
    status: dict[str, Any], health: HealthStatus, message: str
) -> None:
    assert assess_workload("ReplicaSet", {"replicas": 2}, status) == (health, message)


def nodes(desired: int, updated: int, available: int, observed_generation: int = 2) -> dict[str, Any]:
    return {
        "observedGeneration": observed_generation,
        "desiredNumberScheduled": desired,
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
    }


DAEMONS = 'Waiting for daemon set "web" rollout to finish: '


@pytest.mark.parametrize(
    ("strategy", "status", "health", "message"),
    [
        (
            "RollingUpdate",
            nodes(3, 3, 3, observed_generation=1),
            P,
            ROLLOUT + "observed daemon set generation less than desired generation",
        ),
        ("OnDelete", nodes(3, 1, 1), H, "daemon set 1 out of 3 new pods have been updated"),
        ("RollingUpdate", nodes(3, 1, 3), P, DAEMONS + "1 out of 3 new pods have been updated..."),
        ("RollingUpdate", nodes(3, 3, 2), P, DAEMONS + "2 of 3 updated pods are available..."),
        ("RollingUpdate", nodes(3, 3, 3), H, ""),
    ],
)
def test_daemon_set_health_follows_its_pod_counts(
    strategy: str, status: dict[str, Any], health: HealthStatus, message: str
) -> None:
    assert assess_workload("DaemonSet", {"updateStrategy": {"type": strategy}}, status) == (health, message)


def rolling(partition: int | None) -> dict[str, Any]:
    return {"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}


READY = {"observedGeneration": 2, "readyReplicas": 3}
PLAIN = {"replicas": 3, "updateStrategy": {"type": "RollingUpdate"}}


@pytest.mark.parametrize(
    ("spec", "status", "health", "message"),
    [
        (PLAIN, {}, P, "Waiting for statefulset spec update to be observed..."),
        (PLAIN, {"observedGeneration": 1}, P, "Waiting for statefulset spec update to be observed..."),
        (PLAIN, {"observedGeneration": 2, "readyReplicas": 1}, P, "Waiting for 2 pods to be ready..."),
        (
            rolling(1),
            {**READY, "updatedReplicas": 1},
            P,
            "Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...",
        ),
        (
            rolling(1),
            {**READY, "updatedReplicas": 2},
            H,
            "partitioned roll out complete: 2 new pods have been updated...",
        ),
        (rolling(None), READY, H, "partitioned roll out complete: 0 new pods have been updated..."),
        ({"updateStrategy": {"type": "OnDelete"}}, READY, H, "statefulset has 3 ready pods"),
        (
            PLAIN,
            {**READY, "updateRevision": "web-2", "currentRevision": "web-1", "updatedReplicas": 1},
            P,
            "waiting for statefulset rolling update to complete 1 pods at revision web-2...",
        ),
        (
            PLAIN,
            {**READY, "updateRevision": "web-2", "currentRevision": "web-2", "currentReplicas": 3},
            H,
            "statefulset rolling update complete 3 pods at revision web-2...",
        ),
        ({}, READY, H, "statefulset rolling update complete 0 pods at revision ..."),
    ],
)
def test_stateful_set_health_follows_its_strategy(
    spec: dict[str, Any], status: dict[str, Any], health: HealthStatus, message: str
) -> None:
    assert assess_workload("StatefulSet", spec, status) == (health, message)


def test_unobserved_stateful_set_without_generation_is_progressing() -> None:
    assert assess_workload("StatefulSet", {}, {}, generation=0)[0] is P
