"""Computes the status of a Deployment: replica counts and conditions.

In: a Deployment, its ReplicaSets, the time. Out: its status and the time until the next check. Never: reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.sandbox.simulators.deployment_rolling_update_counts import RolloutBounds, read_replicas, read_status_count
from argosy.sandbox.simulators.owner_references_and_marks import append_simulated_note
from argosy.sandbox.simulators.timestamps_and_durations import parse_timestamp, seconds_until_deadline

DeploymentStatus = dict[str, Any]
NO_DEADLINE: Final = 2**31 - 1
COMPLETE_REASON, DEADLINE_EXCEEDED_REASON, PAUSED_REASON = (
    "NewReplicaSetAvailable",
    "ProgressDeadlineExceeded",
    "DeploymentPaused",
)


def compute_deployment_status(
    deployment: Manifest, new: Manifest | None, old: Sequence[Manifest], bounds: RolloutBounds, now: datetime
) -> tuple[DeploymentStatus, float | None]:
    """Return the status and the seconds until the progress deadline, or None."""
    replica_sets = [*old, *([new] if new else [])]
    available = sum(read_status_count(item, "availableReplicas") for item in replica_sets)
    counts = {
        "replicas": sum(read_status_count(item, "replicas") for item in replica_sets),
        "updatedReplicas": read_status_count(new, "replicas"),
        "readyReplicas": sum(read_status_count(item, "readyReplicas") for item in replica_sets),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(map(read_replicas, replica_sets)) - available, 0),
    }
    progress, wait = _compute_progressing_condition(deployment, new, counts, bounds, now)
    optional_conditions = [
        _build_available_condition(available >= bounds.min_available),
        progress,
        *_find_replica_failure(replica_sets),
    ]
    conditions = _add_timestamps(deployment, [item for item in optional_conditions if item], now)
    generation_fields = {"observedGeneration": deployment["metadata"].get("generation", 1)}
    return {**generation_fields, **counts, "conditions": conditions}, wait


def find_condition(manifest: Manifest, type_: str) -> DeploymentStatus:
    conditions = (manifest.get("status") or {}).get("conditions") or ()
    return next((dict(entry) for entry in conditions if entry["type"] == type_), {})


def is_complete(counts: DeploymentStatus, desired_replicas: int) -> bool:
    return all(counts[field] == desired_replicas for field in ("replicas", "updatedReplicas", "availableReplicas"))


def _build_available_condition(is_available: bool) -> DeploymentStatus:
    reason, message = (
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if is_available
        else ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    return _build_condition("Available", "True" if is_available else "False", reason, message)


def _compute_progressing_condition(
    deployment: Manifest, new: Manifest | None, counts: DeploymentStatus, bounds: RolloutBounds, now: datetime
) -> tuple[DeploymentStatus | None, float | None]:
    """Return the Progressing condition and the seconds until the progress deadline.

    `lastUpdateTime` is set only if there was progress now.
    """
    spec, previous = deployment["spec"], find_condition(deployment, "Progressing")
    deadline = spec.get("progressDeadlineSeconds", NO_DEADLINE)
    name = f'ReplicaSet "{new["metadata"]["name"]}"' if new else "Deployment"
    if deadline == NO_DEADLINE:
        return None, None
    if spec.get("paused"):  # k8s: ProgressDeadlineExceeded stays while paused
        is_deadline_exceeded = previous.get("reason") == DEADLINE_EXCEEDED_REASON
        return (
            previous
            if is_deadline_exceeded
            else _build_condition("Progressing", "Unknown", PAUSED_REASON, "Deployment is paused")
        ), None
    if is_complete(counts, bounds.desired):
        return _build_condition("Progressing", "True", COMPLETE_REASON, f"{name} has successfully progressed."), None
    if previous.get("reason") == COMPLETE_REASON and counts["replicas"] == counts["updatedReplicas"]:
        return previous, None  # k8s: a complete rollout stays complete, whatever happens to its Pods later
    if _has_progressed(deployment, previous, counts):
        progressing = _build_condition("Progressing", "True", "ReplicaSetUpdated", f"{name} is progressing.")
        return {**progressing, "lastUpdateTime": format_timestamp(now)}, float(deadline)
    if previous.get("reason") == DEADLINE_EXCEEDED_REASON:
        return previous, None
    wait = seconds_until_deadline(parse_timestamp(previous["lastUpdateTime"]), deadline, now)
    if wait > 0:
        return previous, wait
    return _build_condition(
        "Progressing", "False", DEADLINE_EXCEEDED_REASON, f"{name} has timed out progressing."
    ), None


def _has_progressed(deployment: Manifest, previous: DeploymentStatus, counts: DeploymentStatus) -> bool:
    previous_status = deployment.get("status") or {}
    if not previous or previous.get("reason") in (COMPLETE_REASON, PAUSED_REASON) or not previous.get("lastUpdateTime"):
        return True
    increasing_fields = ("updatedReplicas", "readyReplicas", "availableReplicas")
    old_replicas = counts["replicas"] - counts["updatedReplicas"]
    previous_old_replicas = int(previous_status.get("replicas") or 0) - int(previous_status.get("updatedReplicas") or 0)
    return old_replicas < previous_old_replicas or any(
        counts[field] > int(previous_status.get(field) or 0) for field in increasing_fields
    )


def _find_replica_failure(replica_sets: Sequence[Manifest]) -> list[DeploymentStatus]:
    """k8s: a ReplicaFailure of a ReplicaSet is copied to the Deployment."""
    return next(
        ([failure] for replica_set in replica_sets if (failure := find_condition(replica_set, "ReplicaFailure"))), []
    )


def _build_condition(type_: str, status: str, reason: str, message: str) -> DeploymentStatus:
    return {"type": type_, "status": status, "reason": reason, "message": append_simulated_note(message)}


def _add_timestamps(
    deployment: Manifest, conditions: Sequence[DeploymentStatus], now: datetime
) -> list[DeploymentStatus]:
    """Set lastUpdateTime and lastTransitionTime, keeping the stored times of unchanged conditions."""
    dated = []
    for new_condition in conditions:
        previous = find_condition(deployment, new_condition["type"])
        is_new = (previous.get("status"), previous.get("reason")) != (new_condition["status"], new_condition["reason"])
        updated_at = new_condition.get("lastUpdateTime") or (
            format_timestamp(now) if is_new else previous["lastUpdateTime"]
        )
        transitioned_at = (
            previous.get("lastTransitionTime") if previous.get("status") == new_condition["status"] else None
        )
        dated.append(
            {
                **new_condition,
                "lastUpdateTime": updated_at,
                "lastTransitionTime": transitioned_at or format_timestamp(now),
            }
        )
    return dated
