"""Simulated HorizontalPodAutoscalers: annotations supply the metrics that decide the replica count."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.hpa_algorithm import (
    clamp_replicas,
    compute_desired_replicas,
    compute_usage_ratio,
    read_metric_values,
    read_metrics,
)
from support.simulators import DEPLOYMENT, build_manifest, condition, deployment, fail, health, leaping, simulated

AUTOSCALER = GroupKind("autoscaling", "HorizontalPodAutoscaler")
METRICS = "sandbox.argosy.dev/metrics"
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def autoscaler(annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    manifest = build_manifest(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 5, "metrics": [CPU], **spec},
    )
    manifest["metadata"]["annotations"] = annotations or {}
    return manifest


def requesting(replicas: int = 2) -> Manifest:
    manifest = deployment(replicas)
    resources = {"requests": {"cpu": "100m"}}
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    return manifest


@pytest.mark.anyio
async def test_hpa_scales_by_annotated_metrics_within_its_limits(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(requesting(1))
        await cluster.create(autoscaler())
        live = await world.becomes(
            AUTOSCALER, lambda hpa: hpa["status"]["currentReplicas"] == hpa["status"]["desiredReplicas"] == 2
        )
        assert (await world.get(DEPLOYMENT))["spec"]["replicas"] == 2 and health(live)[0] == "Healthy"
        await world.patch(AUTOSCALER, {"metadata": {"annotations": {METRICS: "cpu=300"}}})
        live = await world.becomes(AUTOSCALER, lambda hpa: hpa["status"]["currentReplicas"] == 4)
        (metric,) = live["status"]["currentMetrics"]
        assert metric["resource"] == {"name": "cpu", "current": {"averageUtilization": 75, "averageValue": "0"}}
        why = "cpu resource utilization (percentage of request) above target"
        await world.told(f"SuccessfulRescale: New size: 4; reason: {why} (simulated by argosy)")
        await world.patch(AUTOSCALER, {"metadata": {"annotations": {METRICS: "cpu=9000"}}})
        await world.becomes(AUTOSCALER, lambda hpa: condition(hpa, "ScalingLimited")["reason"] == "TooManyReplicas")
        await world.becomes(DEPLOYMENT, lambda manifest: manifest["status"]["availableReplicas"] == 5)
        await world.patch(AUTOSCALER, {"metadata": {"annotations": {METRICS: "cpu=10"}}})
        live = await world.becomes(
            AUTOSCALER, lambda hpa: condition(hpa, "AbleToScale")["reason"] == "ScaleDownStabilized"
        )
        assert (await world.get(DEPLOYMENT))["spec"]["replicas"] == 5
        clock.leap(16)
        await world.becomes(
            DEPLOYMENT, lambda manifest: manifest["status"]["availableReplicas"] == 2 == manifest["status"]["replicas"]
        )
        before = await world.settled()
        assert await world.settled() == before


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("workload", "annotations", "said"),
    [
        (deployment(2), {}, "failed to get cpu utilization: missing request for cpu in container main"),
        (requesting(), fail("NotReady"), "the server could not find the requested resource (get pods.metrics.k8s.io)"),
        (requesting(), {METRICS: "busy"}, "invalid metric 'busy'; write for example cpu=90 or queue=250m"),
    ],
)
async def test_hpa_without_usable_metrics_is_degraded(
    cluster: EmbeddedCluster, workload: Manifest, annotations: dict[str, str], said: str
) -> None:
    async with simulated(cluster) as world:
        await cluster.create(workload)
        await cluster.create(autoscaler(annotations))
        live = await world.becomes(AUTOSCALER, lambda hpa: health(hpa)[0] == "Degraded")
        await world.told("FailedGetResourceMetric: the HPA was unable to compute the replica count: ")
    assert said in health(live)[1] and health(live)[1].endswith("(simulated by argosy)")
    assert condition(live, "ScalingActive")["reason"] == "FailedGetResourceMetric"


@pytest.mark.anyio
async def test_hpa_is_degraded_without_a_target_and_disabled_at_zero_replicas(
    cluster: EmbeddedCluster,
) -> None:
    async with simulated(cluster) as world:
        await cluster.create(autoscaler())
        live = await world.becomes(AUTOSCALER, lambda hpa: health(hpa)[0] == "Degraded")
        assert condition(live, "AbleToScale")["reason"] == "FailedGetScale"
        await cluster.create(requesting(0))
        await world.becomes(AUTOSCALER, lambda hpa: condition(hpa, "ScalingActive")["reason"] == "ScalingDisabled")
        assert (await world.get(DEPLOYMENT))["spec"]["replicas"] == 0


@pytest.mark.parametrize(
    ("ratio", "current", "expected"), [("1.05", 10, 10), ("0.95", 10, 10), ("1.5", 3, 5), ("0.1", 4, 1), ("0", 4, 0)]
)
def test_desired_replicas_ignore_small_deviations_and_round_up(ratio: str, current: int, expected: int) -> None:
    assert compute_desired_replicas(Decimal(ratio), current) == expected


def test_hpa_metric_annotations_override_those_of_the_target() -> None:
    near, far = autoscaler({METRICS: "cpu=90%, queue=250m"}), deployment()
    far["metadata"]["annotations"] = {METRICS: "cpu=10,memory=1Gi"}
    metric_values = read_metric_values([near, far])
    assert metric_values == {"cpu": Decimal(90), "queue": Decimal("0.25"), "memory": Decimal(2**30)}
    with pytest.raises(UserError, match="invalid metric"):
        read_metric_values([autoscaler({METRICS: "cpu=much"})])


def test_each_metric_type_is_compared_with_its_target() -> None:
    target = {"type": "AverageValue", "averageValue": "10"}
    pods = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": target}}
    metric, other = read_metrics(autoscaler(metrics=[pods, CPU]))
    assert compute_usage_ratio(metric, {"rps": Decimal(40)}, {}, 2) == 2
    assert compute_usage_ratio(other, {}, {"containers": []}, 2) == 1
    (old,) = read_metrics(autoscaler(metrics=None, targetCPUUtilizationPercentage=50))
    assert (old.name, old.target_value) == ("cpu", 50)
    assert clamp_replicas(9, autoscaler()) == (5, "TooManyReplicas") and clamp_replicas(1, autoscaler()) == (
        2,
        "TooFewReplicas",
    )
