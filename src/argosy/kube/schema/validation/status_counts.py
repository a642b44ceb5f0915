"""Validates that the replica counts in a workload's status are consistent."""

from __future__ import annotations

from argosy.kube.schema.field_error import invalid
from argosy.kube.schema.validation.checks import Faults, Part, non_negative

_TOTAL = "cannot be greater than status.replicas"


def _counts(manifest: Part, signs: tuple[str, ...], within: tuple[str, ...], words: str) -> Faults:
    faults: Faults = []
    status = manifest.get("status") or {}
    non_negative(faults, "status", status, *signs)
    total = status.get("replicas") or 0
    for name in within:
        count = status.get(name) or 0
        if count > total:
            faults.append(invalid(f"status.{name}", str(count), _TOTAL))
    available = status.get("availableReplicas") or 0
    if available > (status.get("readyReplicas") or 0):
        faults.append(invalid("status.availableReplicas", str(available), words))
    return faults


def deployment(manifest: Part) -> Faults:
    signs = (
        "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
        "unavailableReplicas", "collisionCount",
    )  # fmt: skip
    within = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return _counts(manifest, signs, within, "cannot be greater than readyReplicas")


def replica_set(manifest: Part) -> Faults:
    within = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    signs = ("replicas", *within, "observedGeneration")
    return _counts(manifest, signs, within, "cannot be greater than readyReplicas")


def stateful_set(manifest: Part) -> Faults:
    within = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    signs = ("replicas", *within, "observedGeneration", "collisionCount")
    return _counts(manifest, signs, within, "cannot be greater than status.readyReplicas")


def daemon_set(manifest: Part) -> Faults:
    faults: Faults = []
    signs = (
        "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
        "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
    )  # fmt: skip
    non_negative(faults, "status", manifest.get("status") or {}, *signs)
    return faults
