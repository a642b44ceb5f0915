"""Health of Deployments, StatefulSets, ReplicaSets and DaemonSets.

In: a live manifest of apps/v1. Out: an Assessment with Argo CD's message. Never: counts Pods; trusts the status.
"""

from __future__ import annotations

from argosy.gitops.application.step_results import Assessment, Health
from argosy.gitops.health.builtin.fields import (
    first_condition,
    flag,
    generations,
    mapping,
    name_of,
    number,
    optional_number,
    text,
)
from argosy.kube.objects import Manifest

_WAITING = "Waiting for rollout to finish: "


def _progressing(message: str) -> Assessment:
    return Assessment(Health.PROGRESSING, message)


def deployment(manifest: Manifest) -> Assessment:
    if flag(manifest, "spec", "paused"):
        return Assessment(Health.SUSPENDED, "Deployment is paused")
    asked, seen = generations(manifest)
    if asked > seen:
        return _progressing(f"{_WAITING}observed deployment generation less than desired generation")
    rollout = first_condition(manifest, "Progressing")
    if rollout and rollout.reason == "ProgressDeadlineExceeded":
        return Assessment(Health.DEGRADED, f'Deployment "{name_of(manifest)}" exceeded its progress deadline')
    return _deployment_counts(manifest)


def _deployment_counts(manifest: Manifest) -> Assessment:
    wanted = optional_number(manifest, "spec", "replicas")
    replicas, updated, available = (
        number(manifest, "status", each) for each in ("replicas", "updatedReplicas", "availableReplicas")
    )
    if wanted is not None and updated < wanted:
        return _progressing(f"{_WAITING}{updated} out of {wanted} new replicas have been updated...")
    if replicas > updated:
        return _progressing(f"{_WAITING}{replicas - updated} old replicas are pending termination...")
    if available < updated:
        return _progressing(f"{_WAITING}{available} of {updated} updated replicas are available...")
    return Assessment(Health.HEALTHY)


def replica_set(manifest: Manifest) -> Assessment:
    asked, seen = generations(manifest)
    if asked > seen:
        return _progressing(f"{_WAITING}observed replica set generation less than desired generation")
    failure = first_condition(manifest, "ReplicaFailure")
    if failure and failure.status == "True":
        return Assessment(Health.DEGRADED, failure.message)
    wanted = optional_number(manifest, "spec", "replicas")
    available = number(manifest, "status", "availableReplicas")
    if wanted is not None and available < wanted:
        return _progressing(f"{_WAITING}{available} out of {wanted} new replicas are available...")
    return Assessment(Health.HEALTHY)


def daemon_set(manifest: Manifest) -> Assessment:
    asked, seen = generations(manifest)
    if asked > seen:
        return _progressing(f"{_WAITING}observed daemon set generation less than desired generation")
    wanted, updated, available = (
        number(manifest, "status", each)
        for each in ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
    )
    if text(manifest, "spec", "updateStrategy", "type") == "OnDelete":
        return Assessment(Health.HEALTHY, f"daemon set {updated} out of {wanted} new pods have been updated")
    waiting = f'Waiting for daemon set "{name_of(manifest)}" rollout to finish: '
    if updated < wanted:
        return _progressing(f"{waiting}{updated} out of {wanted} new pods have been updated...")
    if available < wanted:
        return _progressing(f"{waiting}{available} of {wanted} updated pods are available...")
    return Assessment(Health.HEALTHY)


def stateful_set(manifest: Manifest) -> Assessment:
    asked, seen = generations(manifest)
    if seen == 0 or asked > seen:
        return _progressing("Waiting for statefulset spec update to be observed...")
    wanted = optional_number(manifest, "spec", "replicas")
    ready = number(manifest, "status", "readyReplicas")
    if wanted is not None and ready < wanted:
        return _progressing(f"Waiting for {wanted - ready} pods to be ready...")
    strategy = mapping(manifest, "spec", "updateStrategy")
    kind = text(strategy, "type")
    if kind == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        return _partitioned(manifest, wanted)
    if kind == "OnDelete":
        return Assessment(Health.HEALTHY, f"statefulset has {ready} ready pods")
    return _stateful_revision(manifest)


def _partitioned(manifest: Manifest, wanted: int | None) -> Assessment:
    partition = optional_number(manifest, "spec", "updateStrategy", "rollingUpdate", "partition")
    updated = number(manifest, "status", "updatedReplicas")
    if wanted is not None and partition is not None and updated < wanted - partition:
        waiting = "Waiting for partitioned roll out to finish: "
        return _progressing(f"{waiting}{updated} out of {wanted - partition} new pods have been updated...")
    return Assessment(Health.HEALTHY, f"partitioned roll out complete: {updated} new pods have been updated...")


def _stateful_revision(manifest: Manifest) -> Assessment:
    new, old = text(manifest, "status", "updateRevision"), text(manifest, "status", "currentRevision")
    if new != old:
        updated = number(manifest, "status", "updatedReplicas")
        return _progressing(f"waiting for statefulset rolling update to complete {updated} pods at revision {new}...")
    there = number(manifest, "status", "currentReplicas")
    return Assessment(Health.HEALTHY, f"statefulset rolling update complete {there} pods at revision {old}...")
