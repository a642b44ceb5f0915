"""Computes the status of a Deployment: replica counts and conditions.

In: a Deployment, its ReplicaSets, the time. Out: its status and the time until the next check. Never: reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import told
from argosy.sandbox.simulators.rollout import Bounds, counted, replicas
from argosy.sandbox.simulators.timestamps import left, moment_of, stamp

Status = dict[str, Any]
NO_DEADLINE: Final = 2**31 - 1
DONE, LATE, PAUSED = "NewReplicaSetAvailable", "ProgressDeadlineExceeded", "DeploymentPaused"


def status_of(
    deployment: Manifest, new: Manifest | None, old: Sequence[Manifest], bounds: Bounds, now: datetime
) -> tuple[Status, float | None]:
    """Return the status and the seconds until the progress deadline, or None."""
    everything = [*old, *([new] if new else [])]
    available = sum(counted(each, "availableReplicas") for each in everything)
    counts = {
        "replicas": sum(counted(each, "replicas") for each in everything),
        "updatedReplicas": counted(new, "replicas"),
        "readyReplicas": sum(counted(each, "readyReplicas") for each in everything),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(map(replicas, everything)) - available, 0),
    }
    progress, wait = _progress(deployment, new, counts, bounds, now)
    found = [_available(available >= bounds.least_available), progress, *_failure(everything)]
    conditions = _dated(deployment, [each for each in found if each], now)
    observed = {"observedGeneration": deployment["metadata"].get("generation", 1)}
    return {**observed, **counts, "conditions": conditions}, wait


def condition(manifest: Manifest, type_: str) -> Status:
    conditions = (manifest.get("status") or {}).get("conditions") or ()
    return next((dict(each) for each in conditions if each["type"] == type_), {})


def is_complete(counts: Status, wanted: int) -> bool:
    return all(counts[field] == wanted for field in ("replicas", "updatedReplicas", "availableReplicas"))


def _available(is_so: bool) -> Status:
    reason, message = (
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if is_so
        else ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    return _said("Available", "True" if is_so else "False", reason, message)


def _progress(
    deployment: Manifest, new: Manifest | None, counts: Status, bounds: Bounds, now: datetime
) -> tuple[Status | None, float | None]:
    """Return the Progressing condition and the seconds until the progress deadline.

    `lastUpdateTime` is set only if there was progress now.
    """
    spec, known = deployment["spec"], condition(deployment, "Progressing")
    deadline = spec.get("progressDeadlineSeconds", NO_DEADLINE)
    name = f'ReplicaSet "{new["metadata"]["name"]}"' if new else "Deployment"
    if deadline == NO_DEADLINE:
        return None, None
    if spec.get("paused"):  # k8s: ProgressDeadlineExceeded stays while paused
        is_late = known.get("reason") == LATE
        return (known if is_late else _said("Progressing", "Unknown", PAUSED, "Deployment is paused")), None
    if is_complete(counts, bounds.wanted):
        return _said("Progressing", "True", DONE, f"{name} has successfully progressed."), None
    if known.get("reason") == DONE and counts["replicas"] == counts["updatedReplicas"]:
        return known, None  # k8s: a complete rollout stays complete, whatever happens to its Pods later
    if _has_moved(deployment, known, counts):
        moved = _said("Progressing", "True", "ReplicaSetUpdated", f"{name} is progressing.")
        return {**moved, "lastUpdateTime": stamp(now)}, float(deadline)
    if known.get("reason") == LATE:
        return known, None
    wait = left(moment_of(known["lastUpdateTime"]), deadline, now)
    if wait > 0:
        return known, wait
    return _said("Progressing", "False", LATE, f"{name} has timed out progressing."), None


def _has_moved(deployment: Manifest, known: Status, counts: Status) -> bool:
    before = deployment.get("status") or {}
    if not known or known.get("reason") in (DONE, PAUSED) or not known.get("lastUpdateTime"):
        return True
    more = ("updatedReplicas", "readyReplicas", "availableReplicas")
    old = counts["replicas"] - counts["updatedReplicas"]
    old_before = int(before.get("replicas") or 0) - int(before.get("updatedReplicas") or 0)
    return old < old_before or any(counts[field] > int(before.get(field) or 0) for field in more)


def _failure(replica_sets: Sequence[Manifest]) -> list[Status]:
    """k8s: a ReplicaFailure of a ReplicaSet is copied to the Deployment."""
    return next(([failed] for each in replica_sets if (failed := condition(each, "ReplicaFailure"))), [])


def _said(type_: str, status: str, reason: str, message: str) -> Status:
    return {"type": type_, "status": status, "reason": reason, "message": told(message)}


def _dated(deployment: Manifest, conditions: Sequence[Status], now: datetime) -> list[Status]:
    """Set lastUpdateTime and lastTransitionTime, keeping the stored times of unchanged conditions."""
    dated = []
    for each in conditions:
        known = condition(deployment, each["type"])
        is_new = (known.get("status"), known.get("reason")) != (each["status"], each["reason"])
        updated = each.get("lastUpdateTime") or (stamp(now) if is_new else known["lastUpdateTime"])
        kept = known.get("lastTransitionTime") if known.get("status") == each["status"] else None
        dated.append({**each, "lastUpdateTime": updated, "lastTransitionTime": kept or stamp(now)})
    return dated
