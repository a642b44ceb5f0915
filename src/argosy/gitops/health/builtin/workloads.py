"""Health of Deployments, StatefulSets, ReplicaSets and DaemonSets.

In: a live manifest of apps/v1. Out: an Assessment with Argo CD's message. Never: counts Pods; trusts the status.
"""

from __future__ import annotations

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.builtin.fields import (
    find_condition,
    read_bool,
    read_generations,
    read_int,
    read_map,
    read_name,
    read_optional_int,
    read_text,
)
from argosy.kube.objects import Manifest

_WAITING_PREFIX = "Waiting for rollout to finish: "


def _progressing(message: str) -> Assessment:
    return Assessment(HealthStatus.PROGRESSING, message)


def assess_deployment(manifest: Manifest) -> Assessment:
    if read_bool(manifest, "spec", "paused"):
        return Assessment(HealthStatus.SUSPENDED, "Deployment is paused")
    generation, observed = read_generations(manifest)
    if generation > observed:
        return _progressing(f"{_WAITING_PREFIX}observed deployment generation less than desired generation")
    rollout = find_condition(manifest, "Progressing")
    if rollout and rollout.reason == "ProgressDeadlineExceeded":
        return Assessment(HealthStatus.DEGRADED, f'Deployment "{read_name(manifest)}" exceeded its progress deadline')
    return _assess_deployment_replicas(manifest)


def _assess_deployment_replicas(manifest: Manifest) -> Assessment:
    desired = read_optional_int(manifest, "spec", "replicas")
    replicas, updated, available = (
        read_int(manifest, "status", field) for field in ("replicas", "updatedReplicas", "availableReplicas")
    )
    if desired is not None and updated < desired:
        return _progressing(f"{_WAITING_PREFIX}{updated} out of {desired} new replicas have been updated...")
    if replicas > updated:
        return _progressing(f"{_WAITING_PREFIX}{replicas - updated} old replicas are pending termination...")
    if available < updated:
        return _progressing(f"{_WAITING_PREFIX}{available} of {updated} updated replicas are available...")
    return Assessment(HealthStatus.HEALTHY)


def assess_replica_set(manifest: Manifest) -> Assessment:
    generation, observed = read_generations(manifest)
    if generation > observed:
        return _progressing(f"{_WAITING_PREFIX}observed replica set generation less than desired generation")
    failure = find_condition(manifest, "ReplicaFailure")
    if failure and failure.status == "True":
        return Assessment(HealthStatus.DEGRADED, failure.message)
    desired = read_optional_int(manifest, "spec", "replicas")
    available = read_int(manifest, "status", "availableReplicas")
    if desired is not None and available < desired:
        return _progressing(f"{_WAITING_PREFIX}{available} out of {desired} new replicas are available...")
    return Assessment(HealthStatus.HEALTHY)


def assess_daemon_set(manifest: Manifest) -> Assessment:
    generation, observed = read_generations(manifest)
    if generation > observed:
        return _progressing(f"{_WAITING_PREFIX}observed daemon set generation less than desired generation")
    desired, updated, available = (
        read_int(manifest, "status", field)
        for field in ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
    )
    if read_text(manifest, "spec", "updateStrategy", "type") == "OnDelete":
        return Assessment(HealthStatus.HEALTHY, f"daemon set {updated} out of {desired} new pods have been updated")
    waiting = f'Waiting for daemon set "{read_name(manifest)}" rollout to finish: '
    if updated < desired:
        return _progressing(f"{waiting}{updated} out of {desired} new pods have been updated...")
    if available < desired:
        return _progressing(f"{waiting}{available} of {desired} updated pods are available...")
    return Assessment(HealthStatus.HEALTHY)


def assess_stateful_set(manifest: Manifest) -> Assessment:
    generation, observed = read_generations(manifest)
    if observed == 0 or generation > observed:
        return _progressing("Waiting for statefulset spec update to be observed...")
    desired = read_optional_int(manifest, "spec", "replicas")
    ready = read_int(manifest, "status", "readyReplicas")
    if desired is not None and ready < desired:
        return _progressing(f"Waiting for {desired - ready} pods to be ready...")
    strategy = read_map(manifest, "spec", "updateStrategy")
    strategy_type = read_text(strategy, "type")
    if strategy_type == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        return _assess_partitioned_rollout(manifest, desired)
    if strategy_type == "OnDelete":
        return Assessment(HealthStatus.HEALTHY, f"statefulset has {ready} ready pods")
    return _assess_stateful_set_revision(manifest)


def _assess_partitioned_rollout(manifest: Manifest, desired: int | None) -> Assessment:
    partition = read_optional_int(manifest, "spec", "updateStrategy", "rollingUpdate", "partition")
    updated = read_int(manifest, "status", "updatedReplicas")
    if desired is not None and partition is not None and updated < desired - partition:
        waiting = "Waiting for partitioned roll out to finish: "
        return _progressing(f"{waiting}{updated} out of {desired - partition} new pods have been updated...")
    return Assessment(HealthStatus.HEALTHY, f"partitioned roll out complete: {updated} new pods have been updated...")


def _assess_stateful_set_revision(manifest: Manifest) -> Assessment:
    new, old = read_text(manifest, "status", "updateRevision"), read_text(manifest, "status", "currentRevision")
    if new != old:
        updated = read_int(manifest, "status", "updatedReplicas")
        return _progressing(f"waiting for statefulset rolling update to complete {updated} pods at revision {new}...")
    current = read_int(manifest, "status", "currentReplicas")
    return Assessment(HealthStatus.HEALTHY, f"statefulset rolling update complete {current} pods at revision {old}...")
